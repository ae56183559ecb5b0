"""The affected region in time: intervals around changes, merged per key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from livemart.arrow.times import EVER
from livemart.delta.partitions import BLANKS
from livemart.refresh.limits import MOST_INTERVALS_OF_A_KEY
from livemart.refresh.pinned_table import FallBack
from livemart.refresh.region import _distinct, _islands, _with_blanks

START = datetime(1970, 1, 1, tzinfo=UTC)


def islands(*points: tuple[str, int | None]) -> list[tuple[str, int, int, bool]]:
    """Return the intervals from 1 before to 2 after each point, in microseconds."""
    times = [None if at is None else START + timedelta(microseconds=at) for _, at in points]
    rows = pa.table(
        {"w0": [key for key, _ in points], "w1": pa.array(times, pa.timestamp("us", tz="UTC"))}
    )
    return [tuple(row.values()) for row in _islands(rows, 1, 2, 1).to_pylist()]


def test_intervals_that_meet_are_one() -> None:
    assert islands(("a", 10), ("a", 13), ("a", 30), ("b", 10)) == [
        ("a", 9, 15, False),
        ("a", 29, 32, False),
        ("b", 9, 12, False),
    ]


def test_a_time_of_null_affects_all_rows_of_its_key() -> None:
    assert islands(("a", 10), ("a", None)) == [("a", -EVER, EVER, True)]


def test_a_key_with_many_intervals_is_covered_by_one() -> None:
    many = [("a", 100 * number) for number in range(MOST_INTERVALS_OF_A_KEY + 1)]

    assert islands(*many) == [("a", -1, 100 * MOST_INTERVALS_OF_A_KEY + 2, False)]


def test_keys_without_a_common_type_cannot_be_compared() -> None:
    with pytest.raises(FallBack) as caught:
        _distinct([pa.table({"w0": ["a"]}), pa.table({"w0": [[1]]})])

    assert caught.value.reason.code == "KEY_NOT_IN_OUTPUT"


def _joined(*columns: pa.Array) -> pa.Table:
    return _distinct([pa.table({"w0": column}) for column in columns])


def test_keys_of_several_types_take_the_one_that_spark_compares_them_in() -> None:
    price, whole = pa.decimal128(12, 2), pa.int64()

    assert _joined(pa.array([1], whole), pa.array([1], pa.int32())).schema.types == [whole]
    both = _joined(pa.array([1], whole), pa.array([Decimal("1.50")], price))
    assert both.schema.types == [pa.decimal128(22, 2)]
    # As Spark compares a bigint with a double: rounded to one.
    doubles = _joined(pa.array([2**53 + 1], whole), pa.array([2.0**53]))
    assert doubles.to_pydict() == {"w0": [2.0**53]}


@pytest.mark.parametrize(
    "columns",
    [
        (pa.array([1]), pa.array([Decimal(1)], pa.decimal128(38, 30))),
        (pa.array([1]), pa.array([1.0], pa.float32()), pa.array([1.0])),
        (pa.array([Decimal("0.1")], pa.decimal128(38, 18)), pa.array([0.1])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array(["1"]), pa.array([b"1"])),
    ],
    ids=["rounded decimals", "three ways", "decimal and double", "number and text", "binary"],
)
def test_keys_that_arrow_would_round_or_read_otherwise_are_not_compared(
    columns: tuple[pa.Array, ...],
) -> None:
    with pytest.raises(FallBack, match="KEY_NOT_IN_OUTPUT"):
        _joined(*columns)


def test_keys_that_the_table_holds_as_null_are_affected_together() -> None:
    keys = pa.table({"w0": pa.array(["a", "", None]), "w1": [1, 2, 3]})

    found = {tuple(row.values()) for row in _with_blanks(keys, "w0").to_pylist()}

    assert found == {("a", 1), *((key, n) for key in (None, *BLANKS) for n in (2, 3))}
