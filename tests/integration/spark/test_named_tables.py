"""Spark's own parser finds the tables of SQL that sqlglot 30.30 does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import flatten
from livemart.spark.named_tables import flatten_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {"m.seen": "from m.visits |> where n > 1;"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from m.a |> select x;", "from <m.a> as `a` |> select x\n"),
        (
            "with a as (select js:x from `m`.`A` t) select (select max(x) from m.b) from a",
            "with a as (select js:x from <m.a> t) select (select max(x) from <m.b> as `b`)"
            " from a\n",
        ),
        (
            "select '𝄞' from spark_catalog.m.a |> where x in (table m.b) |> join m.c using (x)",
            "select '𝄞' from <m.a> as `a` |> where x in (table <m.b>) |> join <m.c> as `c`"
            " using (x)\n",
        ),
        (
            "select s.n from m.seen s",
            "select s.n from (\nfrom <m.visits> as `visits` |> where n > 1\n\n) s\n",
        ),
        (
            "select * from m.a, lateral variant_explode(a.v) as e"
            " where exists (from m.b |> limit 1)",
            "select * from <m.a> as `a`, lateral variant_explode(a.v) as e"
            " where exists (from <m.b> as `b` |> limit 1)\n",
        ),
    ],
)
def test_each_table_is_a_hole_in_the_text(spark: SparkSession, text: str, expected: str) -> None:
    flat, _ = flatten_by_spark(spark, text, VIEWS)

    assert flat.render(lambda mention: f"<{mention.relation}>") == expected


def test_a_text_that_both_parsers_read_has_the_same_holes(spark: SparkSession) -> None:
    text = (
        "with c as (select * from m.a as x) select c.n, b.n from c left join m.b using (id)\n"
        "union all select n, (select count(*) from m.a) from m.`c` where n > (select 1 from m.b)"
    )

    ours, (sparks, _) = flatten(text, VIEWS), flatten_by_spark(spark, text, VIEWS)

    assert sparks.text == ours.text
    assert sparks.occurrences == ours.occurrences


def test_a_temporary_view_of_the_session_keeps_its_name(spark: SparkSession) -> None:
    session = spark.newSession()
    session.range(3).createOrReplaceTempView("guests")

    flat, temporary = flatten_by_spark(session, "from m.a join Guests using (id)", VIEWS)

    assert flat.relations == ("m.a",)
    assert temporary == {"guests"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from m.a version as of 3 |> select x", "an older version of a table"),
        ("from orders |> select x", "orders is named without its schema"),
        ("from m.a |> selects x", "Syntax error"),
        ("from m.own |> select x", "m.own reads itself"),
    ],
)
def test_what_cannot_be_replaced_is_refused(spark: SparkSession, text: str, reason: str) -> None:
    views = {"m.own": "from m.own |> select 1"}

    with pytest.raises(Inapplicable, match=reason):
        flatten_by_spark(spark, text, views)
