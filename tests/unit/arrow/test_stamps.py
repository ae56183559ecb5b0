"""Rows of a change set get the stamps of this run, or those that they were written with."""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.stamps import with_stamps

STORED = pa.table(
    {
        "shop": ["a", "a", "b", None],
        "run": ["first", "second", "first", "first"],
        "n": [1, 1, 5, 7],
    }
)
STAMPS = pa.table({"run": ["third"]})


def change(*rows: tuple[str | None, int, int, int]) -> pa.Table:
    """Return a change set of (shop, n, how often it was there, how often it is there now)."""
    shops, numbers, old, new = zip(*rows, strict=True)
    return pa.table(
        {
            "shop": pa.array(shops, pa.string()),
            "n": pa.array(numbers, pa.int64()),
            OLD_COUNT: pa.array(old, pa.int64()),
            NEW_COUNT: pa.array(new, pa.int64()),
        }
    )


def stamped(*rows: tuple[str | None, int, int, int]) -> set[tuple[object, ...]] | None:
    complete = with_stamps(change(*rows), STORED, STAMPS)
    return None if complete is None else {tuple(row.values()) for row in complete.to_pylist()}


def test_a_row_goes_with_its_own_stamp_and_comes_with_that_of_the_run() -> None:
    assert stamped(("b", 5, 1, 0), ("b", 6, 0, 1), (None, 7, 1, 0)) == {
        ("b", "first", 5, 1, 0),
        ("b", "third", 6, 0, 1),
        (None, "first", 7, 1, 0),
    }


def test_of_rows_that_differ_in_their_stamp_alone_as_many_go_as_must() -> None:
    assert stamped(("a", 1, 2, 1)) == {("a", "first", 1, 1, 0)}
    assert stamped(("a", 1, 2, 0)) == {("a", "first", 1, 1, 0), ("a", "second", 1, 1, 0)}
    assert stamped(("a", 1, 2, 3)) == {("a", "third", 1, 0, 1)}


def test_a_row_that_is_not_stored_cannot_go() -> None:
    assert stamped(("c", 1, 1, 0)) is None
