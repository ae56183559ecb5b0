"""The session for few rows: the same catalog, functions and answers, other plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.limits import FEW_STATEMENT_ROWS
from livemart.spark.arrow_views import ArrowViews, to_view, to_view_of
from livemart.spark.quick_session import few_rows_session, is_quick, session_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_few_rows_have_a_session_of_their_own(spark: SparkSession) -> None:
    quick = session_for(spark, FEW_STATEMENT_ROWS)

    assert quick is few_rows_session(spark)
    assert session_for(spark, FEW_STATEMENT_ROWS + 1) is spark
    assert (is_quick(quick), is_quick(spark)) == (True, False)
    assert quick.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.adaptive.enabled") != "false"


def test_statements_that_have_run_before_have_compiled_code(spark: SparkSession) -> None:
    new, repeated = (few_rows_session(spark, is_repeated=it) for it in (False, True))
    mode = "spark.sql.codegen.factoryMode"

    assert session_for(spark, FEW_STATEMENT_ROWS, is_repeated=True) is repeated
    assert is_quick(repeated)
    assert (new.conf.get(mode), repeated.conf.get(mode)) == ("NO_CODEGEN", "FALLBACK")


def test_rows_arrive_whole_in_either_session(spark: SparkSession) -> None:
    """PySpark drops what follows an empty record batch."""
    pieces = [pa.table({"n": pa.array(numbers, pa.int64())}) for numbers in ([1, 2], [], [3])]
    rows = pa.concat_tables(pieces)

    for session in (spark, few_rows_session(spark)):
        to_view_of(session, "numbers", rows)
        assert session.sql("select sum(n) from numbers").collect()[0][0] == 6
        assert type(spark).getActiveSession() is not few_rows_session(spark)


def test_empty_rows_keep_their_types(spark: SparkSession) -> None:
    to_view(spark, "nothing", pa.table({"n": pa.array([], pa.decimal128(10, 2))}))

    assert spark.table("nothing").dtypes == [("n", "decimal(10,2)")]


def test_named_rows_follow_the_session_of_the_statement(spark: SparkSession) -> None:
    views = ArrowViews(spark)
    views.add("numbers", pa.table({"n": [1, 2, 3]}))

    counted = "select count(*) from numbers"
    quick = views.session(0, ["numbers"])
    large = views.session(None, ["numbers"])

    assert is_quick(quick) and large is spark
    assert [session.sql(counted).collect()[0][0] for session in (quick, large)] == [3, 3]
    views.add("numbers", pa.table({"n": [1]}))
    assert views.session(0).sql(counted).collect()[0][0] == 1
    views.add("others", pa.table({"n": [1]}))
    assert not views.session(0, ["numbers"]).catalog.tableExists("others")
    views.close()
    assert len(views) == 0
    assert not quick.catalog.tableExists("numbers")
