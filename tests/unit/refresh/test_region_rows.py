"""The rows of a region equal those of a plain loop over its keys and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from livemart.arrow.time_zone import UTC_ZONE, TimeZone
from livemart.plan.relations.monotone import restriction_of
from livemart.plan.relations.relation import Restriction, Want
from livemart.refresh.region_rows import (
    exact_restrictions,
    is_comparable,
    lies_in,
    needed_rows,
    rows_to_read,
)

_START = datetime(2026, 3, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", tz="UTC")
_KEYS = st.sampled_from(["a", "b", None])
_ROWS = st.lists(st.tuples(_KEYS, st.none() | st.integers(0, 40)), max_size=8)
_ISLANDS = st.dictionaries(
    _KEYS,
    st.tuples(st.booleans(), st.lists(st.integers(0, 40), unique=True, max_size=6)),
    max_size=3,
)


def _region(keys: tuple[str, ...], time: str | None) -> Any:
    return SimpleNamespace(keys=keys, time=time)


def _micros(seconds: int) -> int:
    return round((_START + timedelta(seconds=seconds)).timestamp() * 1_000_000)


@given(rows=_ROWS, islands=_ISLANDS)
def test_intervals_by_key(
    rows: list[tuple[Any, int | None]], islands: dict[Any, tuple[bool, list[int]]]
) -> None:
    asked = []
    for key, (has_null, bounds) in islands.items():
        ends = sorted(bounds)
        for low, high in zip(ends[::2], ends[1::2], strict=False):
            asked.append((key, low, high, has_null))
    affected = pa.table(
        {
            "w0": pa.array([key for key, *_ in asked], pa.string()),
            "low": pa.array([_micros(low) for _, low, _, _ in asked], pa.int64()),
            "high": pa.array([_micros(high) for _, _, high, _ in asked], pa.int64()),
            "has_null": pa.array([has_null for *_, has_null in asked], pa.bool_()),
        }
    )
    times = [None if at is None else _START + timedelta(seconds=at) for _, at in rows]
    table = pa.table(
        {"key": pa.array([key for key, _ in rows], pa.string()), "at": pa.array(times, _TIME)}
    )

    found = lies_in(_region(("key",), "at"), affected, table).to_pylist()

    assert found == [
        any(
            key == own and (has_null if at is None else low <= at <= high)
            for own, low, high, has_null in asked
        )
        for key, at in rows
    ]


@given(rows=_ROWS, keys=st.sets(st.tuples(_KEYS, st.none() | st.integers(0, 3))))
def test_keys_alone(rows: list[tuple[Any, int | None]], keys: set[tuple[Any, int | None]]) -> None:
    affected = pa.table(
        {
            "w0": pa.array([key for key, _ in keys], pa.string()),
            "w1": pa.array([number for _, number in keys], pa.int32()),
        }
    )
    table = pa.table(
        {
            "key": pa.array([key for key, _ in rows], pa.string()),
            "number": pa.array([number for _, number in rows], pa.int64()),
        }
    )

    found = lies_in(_region(("key", "number"), None), affected, table).to_pylist()

    assert found == [row in keys for row in rows]


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [
        (pa.string(), pa.string(), True),
        (pa.int64(), pa.int32(), True),
        (pa.string(), pa.int32(), False),
        (pa.decimal128(5, 2), pa.decimal128(6, 2), False),
    ],
)
def test_keys_of_different_types_are_left_to_sql(
    stored: pa.DataType, asked: pa.DataType, expected: bool
) -> None:
    affected = pa.table({"w0": pa.array([], asked)})
    table = SimpleNamespace(fields={"k": pa.field("k", stored)})

    assert is_comparable(_region(("k",), None), affected, cast(Any, table)) is expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [(pa.int64(), [2**53]), (pa.float64(), [2**53, 2**53 + 1]), (pa.string(), [2**53, 2**53 + 1])],
)
def test_rows_that_are_one_key_in_the_model_are_read_together(
    key: pa.DataType, expected: list[int]
) -> None:
    rows = pa.table({"k": pa.array([2**53, 2**53 + 1])})
    source, stored = (
        SimpleNamespace(fields={"k": field})
        for field in (rows.schema.field("k"), pa.field("k", key))
    )
    affected = pa.table({"w0": pa.array([2**53])})

    restrictions = exact_restrictions(
        _region(("k",), None), [Restriction(((0, "k", 0),))], affected, cast(Any, stored), UTC_ZONE
    )

    passing = rows_to_read(cast(Any, source), restrictions, affected, UTC_ZONE, None)
    assert rows.filter(passing.matches(rows)).column("k").to_pylist() == expected


_INPUT_KEYS = st.sampled_from(["a", "b", "c", None])


_MINUTES = st.integers(-300, 300)


def _restriction(*keys: str) -> Restriction:
    return restriction_of(Want(tuple(parse_one(key, dialect="spark") for key in keys)))


def _rows(rows: list[tuple[str | None, int | None]]) -> pa.Table:
    moments = [None if at is None else _START + timedelta(minutes=at) for _, at in rows]
    return pa.table(
        {
            "n": pa.array(range(len(rows)), pa.int64()),
            "Shop": pa.array([shop for shop, _ in rows], pa.string()),
            "at": pa.array(moments, _TIME),
        }
    )


def _hours(affected: list[tuple[str | None, int | None]]) -> pa.Table:
    hours = [None if hour is None else _START + timedelta(hours=hour) for _, hour in affected]
    return pa.table(
        {
            "w0": pa.array([shop for shop, _ in affected], pa.string()),
            "w1": pa.array(hours, _TIME),
        }
    )


@given(
    rows=st.lists(st.tuples(_INPUT_KEYS, st.none() | _MINUTES), max_size=12),
    affected=st.lists(
        st.tuples(_INPUT_KEYS, st.none() | st.integers(-5, 5)), min_size=1, max_size=4, unique=True
    ),
)
def test_every_row_of_an_affected_key_stays(
    rows: list[tuple[str | None, int | None]], affected: list[tuple[str | None, int | None]]
) -> None:
    found = needed_rows(
        [_restriction("shop", "date_trunc('hour', at)")], _hours(affected), _rows(rows), UTC_ZONE
    )

    kept = set(found.column("n").to_pylist())
    asked = set(affected)
    for n, (shop, at) in enumerate(rows):
        if (shop, None if at is None else at // 60) in asked:
            assert n in kept
        # A key without an hour makes hours useless, and the filter has asked for the shops.
        if shop not in {each for each, _ in asked} and None not in {hour for _, hour in asked}:
            assert n not in kept


def test_rows_of_other_hours_of_the_same_shops_go() -> None:
    rows = _rows([("a", 30), ("a", 600), ("b", 30), ("b", 610), (None, 30), ("a", None)])

    found = needed_rows(
        [_restriction("shop", "date_trunc('hour', at)")],
        _hours([("a", 0), ("b", 10)]),
        rows,
        UTC_ZONE,
    )

    assert found.column("n").to_pylist() == [0, 3]


def test_one_of_several_restrictions_is_enough() -> None:
    rows = _rows([("a", 30), ("a", 600), ("b", 600)])
    restrictions = [
        _restriction("shop", "date_trunc('hour', at)"),
        _restriction("shop", "at"),
    ]

    found = needed_rows(restrictions, _hours([("a", 0), ("b", 10)]), rows, UTC_ZONE)

    assert found.column("n").to_pylist() == [0, 2]


@pytest.mark.parametrize(
    "restriction",
    [
        _restriction("shop"),
        _restriction("shop", "nothing"),
        _restriction("n", "date_trunc('hour', at)"),
        Restriction(_restriction("shop", "at").keys, "at", before=1, after=1),
    ],
    ids=["one key", "a column that was not read", "another type", "an interval"],
)
def test_what_cannot_be_asked_at_once_stays_as_the_filter_left_it(restriction: Any) -> None:
    rows = _rows([("a", 30), ("c", 600)])

    assert needed_rows([restriction], _hours([("a", 0)]), rows, UTC_ZONE) is rows


@pytest.mark.parametrize("zone", [UTC_ZONE, TimeZone(is_utc=False)], ids=["UTC", "New York"])
def test_the_rows_of_a_day_are_those_of_the_zone(zone: TimeZone) -> None:
    rows = _rows([("a", 4 * 60), ("a", 28 * 60), ("a", 200 * 60)])
    days = pa.table({"w0": ["a"], "w1": pa.array([_START.date()], pa.date32())})
    restriction = _restriction("Shop", "cast(at as date)")
    table = SimpleNamespace(fields={it.name: it for it in rows.schema})

    passing = rows_to_read(cast(Any, table), [restriction], days, zone, None)
    kept = needed_rows([restriction], days, rows, zone)

    # In New York 1 March lasts from 05:00 to 05:00 of UTC.
    least = {0} if zone.is_utc else {1}
    for numbers in (rows.filter(passing.matches(rows)).column("n"), kept.column("n")):
        assert least <= set(numbers.to_pylist()) <= {0, 1}
