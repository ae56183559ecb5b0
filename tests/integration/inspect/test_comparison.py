"""Bags compared both ways: duplicates, NULLs, maps, doubles and sketches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from livemart.arrow.bags import difference, row_codes
from livemart.inspect.comparison import can_be_sorted, compare, in_any_order
from livemart.spark.arrow_views import rows_of, to_frame, to_view
from livemart.spark.differences import comparable, counted_difference
from tests.bag_histories import bag_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


@pytest.mark.parametrize(
    ("value", "other", "separator", "is_same"),
    [
        ("array('a', 'b', null)", "array(null, 'b', 'a')", None, True),
        ("array('ab', 'c')", "array('ba', 'c')", None, False),
        ("array(array(1, 2), array(3))", "array(array(3), array(1, 2))", None, True),
        ("array(array(1, 2), array(3))", "array(array(3), array(2, 1))", None, False),
        ("'a, b, c'", "'c, a, b'", ", ", True),
        ("'12.30'", "'10.23'", ".", False),
        ("'a.b'", "'b.a'", ".", True),
    ],
)
def test_the_elements_of_lists_are_compared_in_one_order(
    spark: SparkSession, value: str, other: str, separator: str | None, is_same: bool
) -> None:
    def side(text: str) -> DataFrame:
        frame = spark.sql(f"select 1 as k, {text} as `V v`")
        return frame.selectExpr(*in_any_order(frame.schema, {"v v": separator}))

    assert compare(side(value), side(other), {}).is_equal is is_same


def test_maps_and_variants_have_no_order(spark: SparkSession) -> None:
    kinds = {
        "array(1)": True,
        "'a'": True,
        "array(map('a', 1))": False,
        "array(parse_json('1'))": False,
        "array(make_interval(1))": False,
        "array(interval '1' day)": True,
        "struct(array(1))": False,
        "binary('a')": False,
    }
    schema = spark.sql("select " + ", ".join(kinds)).schema

    assert [can_be_sorted(field.dataType) for field in schema.fields] == list(kinds.values())


def test_doubles_are_compared_within_a_tolerance(spark: SparkSession) -> None:
    exact = rows("(1, 0.1d + 0.2d)", "(1, double('nan'))", "(2, cast(null as double))")

    assert differences(spark, exact, exact.replace("0.1d + 0.2d", "0.3d")) == 0
    assert differences(spark, exact, exact.replace("0.1d + 0.2d", "0.31d")) == 1
    assert differences(spark, exact, rows("(1, 0.3d)", "(2, cast(null as double))")) == 1


def test_terms_that_cancel_out_leave_a_zero(spark: SparkSession) -> None:
    assert differences(spark, rows("(1, 0.1d + 0.2d - 0.3d)"), rows("(1, 0d)")) == 0
    assert differences(spark, rows("(1, 1e-11d)"), rows("(1, 0d)")) == 1


@pytest.mark.parametrize("value", ["double('nan')", "double('infinity')", "double('-infinity')"])
def test_no_number_is_near_to_one_without_end(spark: SparkSession, value: str) -> None:
    assert differences(spark, rows(f"(1, {value})"), rows(f"(1, {value})")) == 0
    assert differences(spark, rows(f"(1, {value})"), rows("(1, 2d)")) == 1


@pytest.mark.parametrize("nested", ["array(1d, {}, null)", "struct('a', {})", "array(struct({}))"])
def test_doubles_in_arrays_and_structs_have_the_tolerance(spark: SparkSession, nested: str) -> None:
    one, near, far = (rows(f"(1, {nested.format(it)})") for it in ("0.1d + 0.2d", "0.3d", "0.4d"))

    assert differences(spark, one, near) == 0
    assert differences(spark, one, far) == 1
    assert differences(spark, one, rows(f"(1, if(1 = 0, {nested.format('1d')}, null))")) == 1
    ids = [rows(f"(1, struct(0d, {number}))") for number in (10**12, 10**12 + 1)]
    assert differences(spark, *ids) == 1


def test_an_array_of_estimates_has_their_tolerance(spark: SparkSession) -> None:
    one, near, far = (rows(f"(1, array({it}, 7))") for it in (100, 101, 120))

    assert differences(spark, one, near, v="percentile_approx") == 0
    assert differences(spark, one, near) == 2
    assert differences(spark, one, far, v="percentile_approx") == 1


def test_a_bag_of_doubles_without_any_exact_column(spark: SparkSession) -> None:
    one = "select cast(v as double) as v from values (1), (2) as t(v)"

    assert differences(spark, one, one) == 0
    assert differences(spark, one, one.replace("(2)", "(3)")) == 1


@pytest.mark.extended
def test_columns_that_are_passed_on_are_compared_as_identical(spark: SparkSession) -> None:
    kinds = "-0.0d as d, array(-0.0d) as a, -0.0d as computed, array(-0.0d) as computed_too"
    stored, recomputed = spark.sql(f"select {kinds}"), spark.sql(f"select {kinds}".replace("-", ""))

    assert compare(stored, recomputed, {}, ()).is_equal
    found = {
        name: [example.row[name] for example in compare(stored, recomputed, {}, (name,)).examples]
        for name in ("d", "a")
    }
    assert {name: sorted(map(str, values)) for name, values in found.items()} == {
        "d": ["-0.0", "0.0"],
        "a": ["[-0.0]", "[0.0]"],
    }
    one, other = map(spark.sql, (rows(f"(1, map({it}))") for it in ("1, 2, 3, 4", "3, 4, 1, 2")))
    assert compare(one, other, {}, ("v",)).count == 2
    # Without a column that is compared within a tolerance.
    exact = stored.select("d", "a"), recomputed.select("d", "a")
    assert compare(*exact, {}, ("d", "a")).count == 2
    assert compare(exact[0], exact[0], {}, ("d", "a")).is_equal


def test_spark_and_arrow_find_the_same_rows_identical(spark: SparkSession) -> None:
    number = pa.float64()
    of_numbers = pa.map_(pa.string(), number)
    kinds: dict[str, tuple[pa.DataType, list[Any]]] = {
        "d": (number, [0.0, -0.0, math.nan, 1.5]),
        "f": (pa.float32(), [0.0, -0.0, -math.nan]),
        "a": (pa.list_(number), [[], [0.0], [-0.0], [0.0, None], [None, -0.0]]),
        "s": (pa.struct([("t", pa.string()), ("x", number)]), [{"t": "0.0}", "x": -0.0}, {}]),
        "m": (of_numbers, [[("a", 0.0), ("b", 1.0)], [("b", 1.0), ("a", 0.0)], [("a", -0.0)]]),
        "k": (pa.map_(number, of_numbers), [[(0.0, [("a", -0.0)])], [(-0.0, [("a", -0.0)])]]),
        "n": (
            pa.list_(pa.struct([("m", of_numbers)])),
            [[{"m": [("a", 1.0), ("b", -0.0)]}], [{"m": [("b", -0.0), ("a", 1.0)]}], [{"m": None}]],
        ),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in kinds.items()])
    nothing = dict.fromkeys(kinds)
    rows = [nothing | {name: it} for name, (_, values) in kinds.items() for it in (*values, None)]
    old, new = (pa.Table.from_pylist(it, schema=schema) for it in (rows, rows[::-1] + rows[::2]))
    to_view(spark, "old_rows", old)
    to_view(spark, "new_rows", new)

    sides = [("select * from old_rows", 1, 0), ("select * from new_rows", 0, 1)]
    found = spark.sql(str(counted_difference(schema, sides))).toArrow()

    assert bag_of(found) == bag_of(difference(new, old))


def test_a_map_within_a_struct_that_lost_a_null_is_another_row(spark: SparkSession) -> None:
    schema = pa.schema([("s", pa.struct([("m", pa.map_(pa.string(), pa.int32()))]))])
    stored = "select named_struct('m', map('a', 1, 'b', cast(null as int))) as s"
    reordered = "select named_struct('m', map('b', cast(null as int), 'a', 1)) as s"
    lost = "select named_struct('m', map('a', 1)) as s"

    for now, expected in ((stored, 0), (reordered, 2), (lost, 2)):
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


# 2 s.
@pytest.mark.extended
def test_variants_are_compared_by_value_and_shown_as_json(spark: SparkSession) -> None:
    """Spark 4.2.0 refuses GROUP BY, `=`, DISTINCT and UNION on VARIANT."""
    stored = rows('(1, \'{"a":1,"b":[2]}\')', "(2, '1')", "(3, 'null')", "(4, null)", "(5, '1.0')")
    recomputed = rows(
        '(1, \'{"b":[2],"a":1}\')', "(2, '1.0')", "(3, null)", "(4, null)", "(5, '1.00')"
    )
    forms = {
        "variant": "k, parse_json(v) as v",
        "nested": "k, array(parse_json(v)) as a, map('x', struct(parse_json(v) as y)) as m",
    }

    found = {}
    for name, listed in forms.items():
        # By way of Arrow, as `verify` reads what is stored.
        read = to_frame(spark, rows_of(spark.sql(stored.replace("*", listed))))
        found[name] = compare(read, spark.sql(recomputed.replace("*", listed)), {})

    shown = {(it.side, it.row["k"], it.row["v"]) for it in found["variant"].examples}
    assert shown == {
        ("stored", "2", "1 (BIGINT)"),
        ("recomputed", "2", "1 (DECIMAL(1,0))"),
        ("stored", "3", "null"),
        ("recomputed", "3", None),
    }
    assert found["nested"].count == 4


def test_rows_with_times_that_python_does_not_have_are_shown_as_text(spark: SparkSession) -> None:
    moments = "date'+10000-01-01' as d, timestamp_micros(-62135596800000001) as t, "
    moments += "cast(timestamp_micros(9223372036854775807) as timestamp_ntz) as n"
    row = f"{moments}, map(d, array(named_struct('t', t))) as m, parse_json('1') as v, 1 as number"
    stored = spark.sql(f"select {row}")

    found = compare(stored, stored.where("number > 1"), {})

    assert [dict(example.row) for example in found.examples] == [
        {
            "d": "+10000-01-01",
            "t": "0000-12-31 23:59:59.999999",
            "n": "+294247-01-10 04:00:54.775807",
            "m": "[{+10000-01-01, [{0000-12-31 23:59:59.999999}]}]",
            "v": "1",
            "number": "1",
        }
    ]


# Equal are 1Y and 1L, 1.0 and 1.00, objects of the same fields, a letter and its escape.
VARIANTS = r"""
cast(1Y as variant)
cast(1L as variant)
parse_json('1.0')
cast(1.00BD as variant)
cast(1D as variant)
cast(float(1) as variant)
cast('1' as variant)
cast(true as variant)
cast(0D as variant)
cast(-0D as variant)
cast(double('NaN') as variant)
cast(float('NaN') as variant)
parse_json('"NaN"')
parse_json('"Infinity"')
parse_json('1e400')
cast(date'2024-01-01' as variant)
cast(timestamp'2024-01-01' as variant)
cast(timestamp_ntz'2024-01-01' as variant)
parse_json('"2024-01-01"')
cast(X'31' as variant)
parse_json('null')
cast(null as variant)
parse_json('{}')
parse_json('[]')
parse_json('[[]]')
parse_json('{"a":{"x":1,"y":2}}')
parse_json('{"a":{"y":2,"x":1}}')
parse_json(repeat('9', 38))
parse_json(repeat('9', 39))
parse_json('""')
parse_json('"\\u00e9"')
parse_json('"é"')
cast(timestamp'9999-12-31 23:59:59.999999' as variant)
cast(timestamp'2024-11-03 05:30:00Z' as variant)
cast(timestamp'2024-11-03 06:30:00Z' as variant)
"""


@pytest.mark.extended
def test_arrow_and_spark_call_the_same_variants_equal(spark: SparkSession) -> None:
    texts = VARIANTS.strip().splitlines()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    values = " union all ".join(f"select {n} as n, {it} as v" for n, it in enumerate(texts))
    (field,) = spark.sql(f"select v from ({values})").schema.fields
    group = comparable("v", field.dataType)

    of_spark = spark.sql(
        f"select min(n) over (partition by {group}) as first from ({values}) order by n"
    ).toArrow()
    rows_in_order = rows_of(spark.sql(f"select v from ({values}) order by n"))

    codes = row_codes(rows_in_order.columns, len(texts)).tolist()
    assert [codes.index(code) for code in codes] == of_spark.column("first").to_pylist()
    assert len(set(codes)) == len(texts) - 4
