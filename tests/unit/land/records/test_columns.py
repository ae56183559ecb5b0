"""A column is converted as a whole only where the exact reader would see the same."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pytest

from livemart.land.records.columns import UnlikeError, from_text, misleads_decimals, text_type
from livemart.land.records.schema import arrow_type
from livemart.project.spark_types import parse_type


def convert(declared: str, values: list[Any]) -> list[Any]:
    kind = arrow_type(parse_type(declared))
    column = from_text(pa.array(values, text_type(kind)), kind, True)
    assert column.type == kind
    return column.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("declared", ["binary", "map<string,int>", "array<struct<a:binary>>"])
def test_a_type_that_only_the_exact_reader_knows_has_no_text(declared: str) -> None:
    assert text_type(arrow_type(parse_type(declared))) is None


def test_nested_values_and_nulls_keep_their_place() -> None:
    rows = [None, [], [{"a": None, "on": "2026-03-01"}], [{"a": 0.5, "on": None}]]

    assert convert("array<struct<a:float,on:date>>", rows) == [
        None,
        [],
        [{"a": None, "on": date(2026, 3, 1)}],
        [{"a": 0.5, "on": None}],
    ]


def test_times_are_those_of_their_zone_and_without_one_of_utc() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)

    assert convert("timestamp", ["2026-03-01T14:00:00+02:00", None]) == [noon, None]
    assert convert("timestamp", ["2026-03-01T12:00:00"]) == [noon]
    assert convert("timestamp_ntz", ["2026-03-01T12:00:00"]) == [noon.replace(tzinfo=None)]


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        pytest.param("timestamp", ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00"], id="mixed"),
        pytest.param("timestamp", ["2026-03-01 12:00"], id="no seconds"),
        pytest.param("timestamp", ["2026-03-01T12:00:00+18:00"], id="an offset that Arrow refuses"),
        pytest.param("timestamp", ["0001-01-01T00:00:00+01:00"], id="before the calendar"),
        pytest.param("timestamp_ntz", ["2026-03-01T12:00:00Z"], id="a zone"),
        pytest.param("date", ["2026-3-1"], id="a short date"),
        pytest.param("date", ["0000-12-31"], id="the year 0"),
        pytest.param("double", [float("inf")], id="an infinity"),
        pytest.param("float", [1e39], id="beyond a float"),
        pytest.param("float", [0.5, None, 1 + 2**-24], id="halfway between two floats"),
    ],
)
def test_a_column_that_could_be_seen_otherwise_is_left_to_the_exact_reader(
    declared: str, values: list[Any]
) -> None:
    with pytest.raises(UnlikeError):
        convert(declared, values)


def test_a_decimal_that_arrow_rescaled_is_checked_for_its_precision() -> None:
    kind = pa.decimal128(4, 2)
    options = pj.ParseOptions(explicit_schema=pa.schema([("price", kind)]))
    table = pj.read_json(io.BytesIO(b'{"price":99.99}\n{"price":100}'), parse_options=options)
    good, beyond = (table.column("price").combine_chunks().slice(row, 1) for row in (0, 1))

    assert from_text(good, kind, True).to_pylist() == [Decimal("99.99")]
    with pytest.raises(pa.ArrowInvalid):
        from_text(beyond, kind, True)


@pytest.mark.parametrize(
    ("text", "misleads"),
    [
        ('{"n":1e-38}', False),
        ('{"n":1e-39}', True),
        ('{"n":"1e-49"}', True),
        ('{"n":1E-100}', True),
        ('{"n":-1.5e-38}', True),
        ('{"n":1e-0000005}', False),
        ('{"n":[1,2e-0039 ]}', True),
        ('{"n":".5e-99"}', True),
        ('{"n":"+1e-99"}', True),
        ('{"n":"\\u002B1e-99"}', True),
        # Written as escapes.
        ('{"n":"1\\u0065-99"}', True),
        ('{"n":"\\u0031e-99"}', True),
        ('{"n":"1e\\u002d99"}', True),
        ('{"n":"1e-\\u0039\\u0039"}', True),
        (f'{{"n":0.{"0" * 36}1e-2}}', True),
        (f'{{"n":"{"0" * 400}1"}}', True),
        # Texts in which numbers seem to be.
        ('{"n":"store-117"}', False),
        ('{"n":"6f1e-99"}', False),
        ('{"n":"550e8400-e29b-41d4-a71e-446655440000"}', False),
        ('{"n":"12:00:00.5\\u002B02:00"}', False),
        ("{}", False),
        ("-", False),
    ],
)
def test_numbers_that_arrow_takes_for_other_decimals_are_found(text: str, misleads: bool) -> None:
    assert misleads_decimals(text.encode()) is misleads
    assert misleads_decimals(b'{"n":1}\n' + text.encode() + b'\n{"n":1}') is misleads
