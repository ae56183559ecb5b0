"""Values keep their meaning from Arrow to JSON and back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.single_floats import shortest_double
from livemart.store.value_forms import json_value, kind_of, parse_served_value, python_values

MOMENT = datetime(2026, 3, 2, 14, 35, 0, 123_456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.int8(), "int"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.bool_(), "boolean"),
        (pa.date32(), "date"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.list_(pa.int32()), "json"),
        (pa.struct([("a", pa.int32())]), "json"),
        (pa.map_(pa.string(), pa.int32()), "json"),
        (pa.binary(), "binary"),
    ],
)
def test_every_type_of_a_table_has_a_kind(arrow: pa.DataType, kind: str) -> None:
    assert kind_of(arrow) == kind


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("8243.50"), "8243.50"),
        (Decimal("1E+2"), "100"),
        (Decimal("0E-18"), "0.000000000000000000"),
        (MOMENT, "2026-03-02T14:35:00.123456Z"),
        (MOMENT.replace(microsecond=0), "2026-03-02T14:35:00Z"),
        (date(2026, 3, 2), "2026-03-02"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1.5, 1.5),
        (b"\x00\xff", "AP8="),
        (True, True),
        (2**53 - 1, 2**53 - 1),
        # JavaScript would read another number.
        (2**53, "9007199254740992"),
        (-(2**62), "-4611686018427387904"),
        (None, None),
        ("<script>", "<script>"),
    ],
)
def test_json_holds_no_float_for_a_decimal_and_no_time_without_zone(
    value: object, expected: object
) -> None:
    assert json_value(value) == expected


@pytest.mark.parametrize(
    ("key", "kind", "expected"),
    [
        ("é", pa.string(), "é"),
        (True, pa.bool_(), "true"),
        (1.5, pa.float64(), "1.5"),
        (float("nan"), pa.float64(), "NaN"),
        (2**62, pa.int64(), "4611686018427387904"),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        (MOMENT, pa.timestamp("us", "UTC"), "2026-03-02T14:35:00.123456Z"),
        ([True, None], pa.list_(pa.bool_()), "[true,null]"),
        ({"a": 'é"'}, pa.struct([("a", pa.string())]), '{"a":"é\\""}'),
    ],
)
def test_a_key_of_a_map_that_is_no_text_is_written_as_json(
    key: object, kind: pa.DataType, expected: str
) -> None:
    maps = pa.array([[(key, 1)]], pa.map_(kind, pa.int32()))

    assert python_values(maps) == [{expected: 1}]


def test_nested_values_are_json_all_the_way_down() -> None:
    kind = pa.struct(
        [
            ("prices", pa.list_(pa.decimal128(9, 2))),
            ("by_day", pa.map_(pa.date32(), pa.timestamp("us", tz="UTC"))),
            ("nothing", pa.list_(pa.int32())),
        ]
    )
    value = {
        "prices": [Decimal("1.10"), None],
        "by_day": [(date(2026, 3, 2), MOMENT), (date(2026, 3, 1), None)],
        "nothing": None,
    }

    (found,) = python_values(pa.array([value], kind))

    assert json.loads(json.dumps(found)) == {
        "prices": ["1.10", None],
        "by_day": {"2026-03-01": None, "2026-03-02": "2026-03-02T14:35:00.123456Z"},
        "nothing": None,
    }


def test_a_map_keeps_the_order_of_its_entries_and_zero_has_one_form() -> None:
    kind = pa.map_(pa.string(), pa.float64())

    one, other = python_values(pa.array([[("a", 0.0), ("b", 1)], [("b", 1), ("a", -0.0)]], kind))

    assert (json.dumps(one), json.dumps(other)) == ('{"a": 0.0, "b": 1.0}', '{"b": 1.0, "a": 0.0}')


def test_a_time_without_a_zone_is_shown_without_one() -> None:
    bare = pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us"))
    nested = pa.array([[MOMENT.replace(tzinfo=None)]], pa.list_(pa.timestamp("us")))

    (kept,) = python_values(bare)

    assert json_value(kept, kind_of(bare.type)) == "2026-03-02T14:35:00.123456"
    assert python_values(nested) == [["2026-03-02T14:35:00.123456"]]
    assert parse_served_value("timestamp_ntz", "2026-03-02T14:35:00.123456") == kept


def test_a_float_has_its_shortest_digits_however_nested() -> None:
    floats = [0.1, 3.4028235e38, 1e-45, 16777216.0, None, float("-inf"), -0.0]
    nested = pa.array([[0.1, None]], pa.list_(pa.float32()))

    kept = python_values(pa.array(floats, pa.float32()))

    assert list(map(str, kept)) == list(map(str, [*floats[:-1], 0.0]))
    assert python_values(nested) == [[0.1, None]]


def test_times_are_utc_also_without_a_zone() -> None:
    bare = pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us"))
    zoned = pa.array([MOMENT], pa.timestamp("us", tz="Asia/Tokyo"))

    assert python_values(bare) == python_values(zoned) == [MOMENT]
    assert [value.tzinfo for value in python_values(zoned)] == [UTC]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("string", st.text()),
        ("int", st.integers(-(2**31), 2**31 - 1)),
        ("bigint", st.integers(-(2**63), 2**63 - 1)),
        ("float", st.floats(width=32).map(shortest_double)),
        ("double", st.floats()),
        ("boolean", st.booleans()),
        ("date", st.dates()),
        ("timestamp", st.datetimes(timezones=st.just(UTC))),
        ("decimal(18,2)", st.decimals(places=2, min_value=-(10**15), max_value=10**15)),
        ("binary", st.binary()),
    ],
)
def test_what_json_shows_is_understood_as_a_filter(
    kind: str, values: st.SearchStrategy[Any]
) -> None:
    @given(values)
    def check(value: Any) -> None:
        shown = json_value(value)
        text = shown if isinstance(shown, str) else json.dumps(shown)
        found = parse_served_value(kind, text)
        assert found == value or (value != value and found != found)

    check()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "2147483648"),
        ("int", "1.0"),
        ("int", "1_000"),
        ("int", "٣"),
        ("bigint", "9223372036854775808"),
        ("bigint", "9" * 5_000),
        ("boolean", "1"),
        ("float", "one"),
        ("float", "1_000.5"),
        ("double", "one"),
        ("double", "1_000.5"),
        ("double", "٣"),
        ("decimal(18,2)", "1e999999"),
        ("decimal(18,2)", "NaN"),
        ("date", "2026-02-30"),
        ("timestamp", "yesterday"),
        ("timestamp", "0001-01-01T00:00:00+14:00"),
        ("timestamp", "2026-03-02T14:35:00.1234561Z"),
        ("timestamp_ntz", "2026-03-02T14:35:00.0000001"),
        ("binary", "&"),
        ("json", "{}"),
    ],
)
def test_text_that_is_no_value_is_refused_with_its_type(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match="is not a value of type"):
        parse_served_value(kind, text)
