"""Rows as literals, and as groups."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from livemart.spark.differences import comparable, grouped_columns, row_of_literals, typed_columns
from livemart.spark.types import spark_schema

AS_OF = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)


def test_a_row_of_times_and_whole_numbers_is_spelled_out() -> None:
    rows = pa.table(
        {
            "as_of": pa.array([AS_OF], pa.timestamp("us", "UTC")),
            "local": pa.array([AS_OF.replace(tzinfo=None)], pa.timestamp("us")),
            "a day": pa.array([date(1969, 12, 31)], pa.date32()),
            "n": pa.array([-(2**63)], pa.int64()),
        }
    )

    assert row_of_literals(rows) == (
        "(select cast(timestamp_micros(1772366400000001) as timestamp) as `as_of`,"
        " timestamp_ntz'2026-03-01 12:00:00.000001' as `local`,"
        " date_from_unix_date(-1) as `a day`,"
        " cast(-9223372036854775808 as bigint) as `n`)"
    )


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"n": pa.array([], pa.int64())}),
        pa.table({"n": [1, 2]}),
        pa.table({"n": pa.array([None], pa.int64())}),
        pa.table({"n": [1], "text": ["a"]}),
        pa.table({"n": [0.1]}),
    ],
)
def test_other_rows_stay_in_a_view(rows: pa.Table) -> None:
    assert row_of_literals(rows) is None


def test_rows_with_maps_are_grouped_by_their_entries_at_any_depth() -> None:
    counts = pa.map_(pa.string(), pa.int64())
    schema = pa.schema(
        [("id", pa.int64()), ("by_dish", counts), ("it's", pa.struct([("by_dish", counts)]))]
    )

    selected, groups = grouped_columns(schema)

    assert selected == ["`id`", "any_value(`by_dish`) as `by_dish`", "any_value(`it's`) as `it's`"]
    entries = "named_struct('key', {0}.key, 'value', {0}.value)"
    assert groups == [
        "`id`",
        f"transform(map_entries(`by_dish`), x0 -> {entries.format('x0')})",
        "if(`it's` is null, null, named_struct('by_dish', transform("
        f"map_entries(`it's`.`by_dish`), x1 -> {entries.format('x1')})))",
    ]


def test_rows_with_doubles_are_grouped_by_the_signs_of_zeros_too() -> None:
    schema = pa.schema([("d", pa.float64()), ("a", pa.list_(pa.float32())), ("n", pa.int64())])

    selected, groups = grouped_columns(schema)

    assert selected == ["any_value(`d`) as `d`", "any_value(`a`) as `a`", "`n`"]
    signs = "if(`d` = 0, cast(`d` as string) = '-0.0', false)"
    assert groups == ["`d`", signs, "`a`", "cast(`a` as string)", "`n`"]


def test_as_keys_maps_are_equal_whatever_the_order_of_their_entries() -> None:
    (field,) = spark_schema(pa.schema([("m", pa.map_(pa.string(), pa.int64()))])).fields

    assert comparable("`m`", field.dataType) == (
        "array_sort(transform(map_entries(`m`), x0 -> named_struct('key', x0.key, 'value',"
        " x0.value)))"
    )


def test_texts_that_a_table_holds_as_null_are_selected_as_null() -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])

    assert typed_columns(schema, frozenset({"k"})) == (
        "if(cast(q.`k` as string) in ('', '__HIVE_DEFAULT_PARTITION__'), null,"
        " cast(q.`k` as string)) as `k`, cast(q.`n` as bigint) as `n`"
    )
