"""The session for few rows: the same catalog, functions and answers, other plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from livemart.spark.arrow_views import ArrowViews, to_view, to_view_of
from livemart.spark.quick_session import few_rows_session, is_quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_few_rows_have_a_session_of_their_own(spark: SparkSession) -> None:
    quick = few_rows_session(spark)

    assert quick is few_rows_session(spark)
    assert (is_quick(quick), is_quick(spark)) == (True, False)
    assert quick.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.adaptive.enabled") != "false"


def test_statements_that_have_run_before_have_compiled_code(spark: SparkSession) -> None:
    new, repeated = (few_rows_session(spark, is_repeated=it) for it in (False, True))
    mode = "spark.sql.codegen.factoryMode"

    assert is_quick(repeated)
    assert (new.conf.get(mode), repeated.conf.get(mode)) == ("NO_CODEGEN", "FALLBACK")
    interpreted = spark.newSession()
    interpreted.conf.set(mode, "NO_CODEGEN")
    assert few_rows_session(interpreted, is_repeated=True).conf.get(mode) == "NO_CODEGEN"


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


def test_joins_of_few_rows_shuffle_nothing(spark: SparkSession) -> None:
    quick = few_rows_session(spark)
    for name in ("lefts", "rights"):
        to_view_of(quick, name, pa.table({"n": [1, 2]}))

    joined = quick.sql("select n, count(*) from lefts left join rights using (n) group by n")

    assert "Exchange" not in joined._jdf.queryExecution().executedPlan().toString()
    assert sorted(map(tuple, joined.collect())) == [(1, 1), (2, 1)]


def test_named_rows_follow_the_session_of_the_statement(spark: SparkSession) -> None:
    views = ArrowViews(spark)
    views.add("numbers", pa.table({"n": [1, 2, 3]}))

    counted = "select count(*) from numbers"
    quick = views.session([counted], (), ["numbers"])
    large = views.session([counted], None, ["numbers"])

    assert is_quick(quick) and large is spark
    assert [session.sql(counted).collect()[0][0] for session in (quick, large)] == [3, 3]
    views.add("numbers", pa.table({"n": [1]}))
    assert views.session([counted], ()).sql(counted).collect()[0][0] == 1
    views.add("others", pa.table({"n": [1]}))
    assert not views.session([counted], (), ["numbers"]).catalog.tableExists("others")
    views.close()
    assert len(views) == 0
    assert not quick.catalog.tableExists("numbers")


@pytest.mark.extended
def test_maps_are_what_they_are_in_a_build_in_the_session_of_each_statement(
    spark: SparkSession,
) -> None:
    """Spark 4.2.0: MapSort, for keys of GROUP BY, and CreateMap differ once code is generated."""
    made = "map('a', if(n > 0, null, n))"
    rows = pa.table({"n": [0, 1, 1], "d": [-0.0, 0.0, -0.0]})
    views = ArrowViews(spark)
    views.add("numbers", rows)
    for sql in (
        f"select cast({made} as string), count(*) from numbers group by {made} order by 1",
        "select cast(map(d, 1) as string), count(*) from numbers group by 1 order by 1",
    ):
        found = [
            views.session([sql], (), ["numbers"], is_repeated=is_repeated).sql(sql).collect()
            for is_repeated in (False, True)
        ]
        to_view(spark, "numbers", rows)

        assert found == [spark.sql(sql).collect()] * 2
        # When this fails, the reason for the rule is gone.
        interpreted = few_rows_session(spark)
        to_view_of(interpreted, "numbers", rows)
        assert interpreted.sql(sql).collect() != found[0]
