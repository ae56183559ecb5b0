"""Bags compared both ways: duplicates, NULLs, maps, doubles and sketches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from livemart.inspect.comparison import compare
from livemart.spark.differences import counted_difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def differences(spark: SparkSession, stored: str, recomputed: str, **approximate: str) -> int:
    found = compare(spark.sql(stored), spark.sql(recomputed), approximate)
    assert found.is_equal == (found.count == 0 and not found.columns)
    return found.count


ROWS = "select * from values {} as t(k, v)"


def rows(*values: str) -> str:
    return ROWS.format(", ".join(values))


@pytest.mark.parametrize(
    ("stored", "recomputed", "expected"),
    [
        (rows("(1, 'a')", "(1, 'a')"), rows("(1, 'a')", "(1, 'a')"), 0),
        (rows("(1, 'a')", "(1, 'a')"), rows("(1, 'a')"), 1),
        (rows("(1, null)"), rows("(1, null)"), 0),
        (rows("(1, null)"), rows("(null, 1)").replace("(k, v)", "(k, v)"), 2),
        (rows("(1, map('x', 1, 'y', 2))"), rows("(1, map('y', 2, 'x', 1))"), 0),
        (rows("(1, map('x', 1))"), rows("(1, map('x', 2))"), 2),
        (rows("(1, array(map('x', 1, 'y', 2)))"), rows("(1, array(map('y', 2, 'x', 1)))"), 0),
        (rows("(1, struct(map('x', 1)))"), rows("(1, struct(map('x', 1)))"), 0),
    ],
)
def test_rows_are_compared_as_bags(
    spark: SparkSession, stored: str, recomputed: str, expected: int
) -> None:
    if "null, 1" in recomputed:
        stored, recomputed = rows("(1, cast(null as int))"), rows("(cast(null as int), 1)")

    assert differences(spark, stored, recomputed) == expected


def test_doubles_are_compared_within_a_tolerance(spark: SparkSession) -> None:
    exact = rows("(1, 0.1d + 0.2d)", "(1, double('nan'))", "(2, cast(null as double))")

    assert differences(spark, exact, exact.replace("0.1d + 0.2d", "0.3d")) == 0
    assert differences(spark, exact, exact.replace("0.1d + 0.2d", "0.31d")) == 1
    assert differences(spark, exact, rows("(1, 0.3d)", "(2, cast(null as double))")) == 1


def test_a_bag_of_doubles_without_any_exact_column(spark: SparkSession) -> None:
    one = "select cast(v as double) as v from values (1), (2) as t(v)"

    assert differences(spark, one, one) == 0
    assert differences(spark, one, one.replace("(2)", "(3)")) == 1


def test_a_map_within_a_struct_that_lost_a_null_is_another_row(spark: SparkSession) -> None:
    schema = pa.schema([("s", pa.struct([("m", pa.map_(pa.string(), pa.int32()))]))])
    stored = "select named_struct('m', map('a', 1, 'b', cast(null as int))) as s"
    reordered = "select named_struct('m', map('b', cast(null as int), 'a', 1)) as s"
    lost = "select named_struct('m', map('a', 1)) as s"

    for now, expected in ((reordered, 0), (lost, 2)):
        sides = [(stored, 1, 0), (now, 0, 1)]
        assert spark.sql(str(counted_difference(schema, sides))).count() == expected


def test_sketches_are_compared_by_their_estimate(spark: SparkSession) -> None:
    sketch = "select 1 as k, hll_sketch_agg(id{}) as s from range({})"

    assert (
        differences(spark, sketch.format("", 500), sketch.format(" + 7", 500), s="hll_sketch_agg")
        == 0
    )
    assert (
        differences(spark, sketch.format("", 500), sketch.format("", 900), s="hll_sketch_agg") == 1
    )


def test_estimates_are_compared_within_their_tolerance(spark: SparkSession) -> None:
    near, far = rows("(1, 100)"), rows("(1, 120)")

    assert differences(spark, near, rows("(1, 103)"), v="hll_sketch_estimate") == 0
    assert differences(spark, near, far, v="hll_sketch_estimate") == 1


def test_another_schema_is_a_difference(spark: SparkSession) -> None:
    found = compare(
        spark.sql("select 1 as k, 2 as v"), spark.sql("select 1 as k, 2L as v, 3 as w"), {}
    )

    assert not found.is_equal
    assert found.columns == (
        "v: stored int, recomputed bigint",
        "w: stored no such column, recomputed int",
    )


def test_up_to_twenty_rows_are_shown_and_all_are_counted(spark: SparkSession) -> None:
    found = compare(spark.sql("select id from range(50)"), spark.sql("select id from range(0)"), {})

    assert (found.count, len(found.examples)) == (50, 20)
    assert found.examples[0].side == "stored"
