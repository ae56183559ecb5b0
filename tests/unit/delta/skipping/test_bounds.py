"""Bounds of columns in the log: exact or wide, and of all columns of a file or of none."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.delta.skipping.bounds import indexed_columns, log_statistics

INF, NAN = float("inf"), float("nan")
LAST = "\U0010ffff"
UTC_TIME, LOCAL_TIME = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def statistics_of(rows: pa.Table, indexed: Sequence[str] | None = None) -> str:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, store_schema=False, coerce_timestamps="us")
    footer = pq.ParquetFile(buffer).metadata
    names = rows.column_names if indexed is None else indexed
    return log_statistics(rows.schema, footer, rows.column, names, knows_nan=False)


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.int64(), [-(2**63), 2**63 - 1, None], "-9223372036854775808", "9223372036854775807"),
        (pa.decimal128(10, 2), [Decimal("1.5"), Decimal("-0.01")], "-0.01", "1.50"),
        (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal(0)], "0", "9" * 38),
        (pa.decimal128(38, 38), [Decimal("1E-38"), None], *["0." + "0" * 37 + "1"] * 2),
        (pa.float64(), [5e-324, 1e308], "5e-324", "1e+308"),
        (pa.float64(), [0.1, 0.2], "0.1", "0.2"),
        (pa.float64(), [-INF, INF], '"-Infinity"', '"Infinity"'),
        (pa.float64(), [0.0, 1.0], "-0.0", "1.0"),
        (pa.float64(), [-0.0, -1.0], "-1.0", "0.0"),
        (pa.float32(), [0.1, None], *["0.10000000149011612"] * 2),
        (pa.bool_(), [True, False], "false", "true"),
        (pa.string(), ["é" * 33], f'"{"é" * 32}"', f'"{"é" * 32}{LAST}"'),
        (pa.string(), [LAST * 33 + "a"], f'"{LAST * 32}"', f'"{LAST * 34}"'),
        (pa.string(), [LAST * 40], f'"{LAST * 32}"', f'"{LAST * 40}"'),
        (pa.string(), ["𠮷", 'a"\n'], '"a\\"\\n"', '"𠮷"'),
        (pa.date32(), [date.min, date.max], '"0001-01-01"', '"9999-12-31"'),
        (
            UTC_TIME,
            [datetime(1600, 1, 1, 0, 0, 0, 1_999, UTC)],
            '"1600-01-01T00:00:00.001Z"',
            '"1600-01-01T00:00:00.002Z"',
        ),
        (
            LOCAL_TIME,
            [datetime.min, datetime.max],
            '"0001-01-01T00:00:00.000"',
            '"9999-12-31T23:59:59.999999"',
        ),
    ],
)
def test_a_bound_is_true_and_spelled_as_every_reader_reads_it(
    kind: pa.DataType, values: list[Any], low: str, high: str
) -> None:
    statistics = statistics_of(pa.table({"c": pa.array(values, kind)}))

    nulls = f'"nullCount":{{"c":{values.count(None)}}}'
    assert statistics == (
        f'{{"numRecords":{len(values)},"minValues":{{"c":{low}}},"maxValues":{{"c":{high}}},{nulls}}}'
    )


@pytest.mark.parametrize(
    "unsaid",
    [
        pa.array([NAN, 1.0]),
        pa.array([NAN, NAN], pa.float32()),
        pa.array([2**62, 0]).cast(UTC_TIME),
        pa.array([-(2**62), 0]).cast(LOCAL_TIME),
        pa.array([3_000_000, 0], pa.int32()).cast(pa.date32()),
    ],
    ids=["NaN", "only NaN", "year 148108", "year -142169", "year 10183"],
)
def test_where_one_column_has_no_bound_none_has(unsaid: pa.Array) -> None:
    """deltalake 1.6.6 takes a missing one for NULL, and finds no row by a filter on the column."""
    statistics = json.loads(statistics_of(pa.table({"c": unsaid, "k": [1, 2]})))

    assert statistics == {"numRecords": 2, "nullCount": {"c": 0, "k": 0}}


def test_columns_that_readers_expect_no_bounds_of_have_none() -> None:
    rows = pa.table(
        {
            "void": pa.nulls(2, pa.float64()),
            "bytes": [b"a", None],
            "list": [[1.0], [NAN]],
            "pair": [{"x": NAN}, None],
            "blobs": [{"metadata": b"", "value": b""}] * 2,
            "k": [1, 2],
        }
    )

    statistics = json.loads(statistics_of(rows))

    assert statistics["nullCount"] == {"void": 2, "bytes": 1, "k": 0}
    # A struct without fields: one that is missing counts as NULL for deltalake, too.
    assert statistics["minValues"] == {"pair": {}, "k": 1}
    assert statistics["maxValues"] == {"pair": {}, "k": 2}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, [f"c{number}" for number in range(32)]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["c0", "c1"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        (
            {"delta.dataSkippingNumIndexedCols": "-1"},
            [*(f"c{number}" for number in range(33)), "a.b", "x, `y"],
        ),
        (
            {"delta.dataSkippingStatsColumns": "C3, `a.b`,`x, ``y`, s.f"},
            ["c3", "a.b", "x, `y"],
        ),
        (
            {
                "delta.dataSkippingStatsColumns": "c32",
                "delta.dataSkippingNumIndexedCols": "1",
            },
            ["c32"],
        ),
    ],
)
def test_properties_of_the_table_say_which_columns_have_bounds(
    properties: Mapping[str, str], expected: list[str]
) -> None:
    names = [*(f"c{number}" for number in range(33)), "a.b", "x, `y"]

    assert indexed_columns(names, properties) == expected
