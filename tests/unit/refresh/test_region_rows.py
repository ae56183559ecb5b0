"""Which rows lie in a region: as a plain loop over its keys and intervals says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.refresh.region_rows import is_comparable, lies_in

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
        {"Key": pa.array([key for key, _ in rows], pa.string()), "At": pa.array(times, _TIME)}
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

    assert is_comparable(_region(("k",), None), affected, pa.schema([("k", stored)])) is expected
