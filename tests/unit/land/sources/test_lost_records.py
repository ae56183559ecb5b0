"""Lost records are detected by offsets and identities, and reported with the next step."""

from __future__ import annotations

import pytest

from livemart.land.sources.lost_records import GONE, LostRecords, lost_error, lost_records

Identity = tuple[str | None, str | None]


@pytest.mark.parametrize(
    ("start", "identity", "expected"),
    [
        # The oldest record that is there is the next one to be read, or an earlier one.
        (5, None, None),
        (0, None, None),
        (6, None, LostRecords("a", 5, 6, "expired")),
        # The partition's identity is unknown, or known at one time only.
        (6, (None, None), LostRecords("a", 5, 6, "expired")),
        (6, ("x", None), LostRecords("a", 5, 6, "expired")),
        (6, (None, "x"), LostRecords("a", 5, 6, "expired")),
        (6, ("x", "x"), LostRecords("a", 5, 6, "expired")),
        # Offsets of another log mean nothing, even if they look right.
        (5, ("x", "y"), LostRecords("a", 5, None, "replaced")),
        (6, ("x", "y"), LostRecords("a", 5, None, "replaced")),
        # Absence is a loss only where the source can tell it from a list that is short.
        (None, None, None),
        (None, (None, None), LostRecords("a", 5, None, "gone")),
        (None, ("x", None), LostRecords("a", 5, None, "gone")),
        # Its removal was reported once; a new partition of its name is another one.
        (None, (GONE, None), None),
        (6, (GONE, "y"), None),
    ],
)
def test_one_partition_lost_this(
    start: int | None, identity: Identity | None, expected: LostRecords | None
) -> None:
    starts = {} if start is None else {"a": start}
    identities = {} if identity is None else {"a": identity}

    losses = list(lost_records({"a": 5}, starts, identities))

    assert losses == ([] if expected is None else [expected])


def test_a_partition_that_was_never_read_lost_nothing() -> None:
    assert list(lost_records({}, {"a": 9}, {"a": ("x", "y")})) == []


def test_all_losses_are_told_at_once_in_the_order_of_partitions() -> None:
    after = {"b": 5, "a": 2, "c": 1}
    losses = list(lost_records(after, {"b": 8, "c": 0}, {"a": ("x", None), "c": ("x", "y")}))

    error = lost_error("kafka", ["bronze.orders", "bronze.events"], losses)

    assert error.code == "SOURCE_RECORDS_LOST"
    assert error.message == (
        "bronze.orders, bronze.events: kafka: "
        "a: the partition is gone: it was read to offset 2, and what it held from there on was not "
        "read; "
        "b: records 5 to 7 had expired before they were read; "
        "c: another partition has its name: the one before was read to offset 1, and what it held "
        "from there on was not read"
    )
    for choice in ("after_loss: earliest", "after_loss: latest"):
        assert choice in error.hint
