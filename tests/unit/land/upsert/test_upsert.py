"""The change of arrived rows, without refused rows and without landing's own columns."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from livemart.land.records.schema import RESCUED_TYPE, TIMESTAMP
from livemart.land.upsert.upsert import KeyChanges, Upsert, as_recorded
from livemart.project.graph import RowRules
from tests.deliveries import source

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
LANDED = pa.schema(
    [
        ("id", pa.string()),
        ("at", TIMESTAMP),
        ("note", pa.string()),
        ("version", pa.int64()),
        ("_landed_at", TIMESTAMP),
        ("_batch_id", pa.int64()),
        ("_origin", pa.string()),
        ("_rescued_data", RESCUED_TYPE),
    ]
)
RULES = RowRules(keys=("id",), sequence_by=("version",), event_time_is_fixed=True)
KEEPING = pa.schema(
    [
        ("id", pa.int64()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("_operation", pa.string()),
        ("_sequence", pa.string()),
        ("_kept_values", pa.map_(pa.string(), pa.string())),
        ("_landed_at", pa.timestamp("us", tz="UTC")),
        ("_batch_id", pa.int64()),
        ("_origin", pa.string()),
        ("_rescued_data", pa.map_(pa.string(), pa.string())),
    ]
)
DELETES = pa.schema([KEEPING.field(name) for name in ("id", "_sequence", "_batch_id")])
UPSERT = Upsert(RowRules(("id",), ("_sequence",)), None)


def row(key: str, version: int, note: str | None = "x", **values: Any) -> dict[str, Any]:
    """A version of a key; a delete has no note."""
    rescued = {"_rescued_data": [("tip", "5")]}
    landing = {"_landed_at": NOON, "_batch_id": 0, "_origin": "a:1", **rescued}
    return {"id": key, "at": NOON, "version": version, "note": note} | landing | values


def change(
    arrived: list[dict[str, Any]],
    stored: list[dict[str, Any]] | None = None,
    remembered: list[dict[str, Any]] | None = None,
    fixed_time: str | None = "at",
) -> KeyChanges:
    is_delete = np.array([each["note"] is None for each in arrived], dtype=bool)
    before, deletes, rows = (
        pa.Table.from_pylist(each or [], LANDED) for each in (stored, remembered, arrived)
    )
    return Upsert(RULES, fixed_time).change(before, deletes, rows, is_delete)


def shown(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [(each["id"], each["version"], each["note"]) for each in rows.to_pylist()]


def test_refused_rows_leave_the_deletes_and_winners_behind_them_where_they_were() -> None:
    changes = change(
        [
            row("moved", 2, at=LATER),
            row("deleted", 2, None),
            row("moved", 3, at=LATER),
            row("new", 1),
            row("deleted again", 2, None),
        ],
        stored=[row("moved", 1), row("deleted", 1)],
        remembered=[row("deleted again", 1, None)],
    )

    assert changes.is_refused.tolist() == [True, False, True, False, False]
    assert shown(changes.written) == [("new", 1, "x")]
    assert shown(changes.deleting) == [("deleted", 2, None), ("deleted again", 2, None)]
    assert shown(changes.removed) == [("deleted", 1, "x")]
    assert shown(changes.forgotten) == [("deleted again", 1, None)]


def test_a_refused_version_does_not_supersede_an_earlier_one_that_is_taken() -> None:
    arrived = [row("a", 2, "taken"), row("a", 3, "refused", at=LATER)]

    changes = change(arrived, stored=[row("a", 1)])

    assert shown(changes.written) == [("a", 2, "taken")]
    # Without the promise the later one wins.
    assert shown(change(arrived, [row("a", 1)], fixed_time=None).written) == [("a", 3, "refused")]


def test_if_all_is_refused_nothing_changes() -> None:
    changes = change([row("a", 2, at=LATER)], stored=[row("a", 1)])

    assert changes.is_refused.all()
    parts = (changes.written, changes.deleting, changes.removed, changes.forgotten)
    assert [part.num_rows for part in parts] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("values", "is_written"),
    [
        ({}, False),
        # Where and when a record arrived is no part of what it says.
        ({"_landed_at": LATER, "_batch_id": 9, "_origin": "z:9"}, False),
        # A field that no column takes is. At an equal sequence the greater text wins.
        ({"_rescued_data": [("tip", "6")]}, True),
        ({"_rescued_data": [("tip", "4")]}, False),
        ({"note": "y"}, True),
        ({"note": "a"}, False),
    ],
)
def test_a_repeat_is_known_by_what_its_record_says(
    values: dict[str, Any], is_written: bool
) -> None:
    changes = change([row("a", 1, **values)], stored=[row("a", 1)])

    assert (changes.written.num_rows, changes.removed.num_rows) == (is_written, is_written)
    assert not changes.is_refused.any()


def test_a_source_promises_a_fixed_time_of_the_column_that_it_names() -> None:
    moving = source("orders", keys=("order_id",))
    fixed = source("orders", keys=("order_id",), event_time_is_fixed=True)

    assert (Upsert.of(moving).fixed_time, Upsert.of(fixed).fixed_time) == (None, "ordered_at")
    assert Upsert.of(fixed).rules == fixed.row_rules


def version(sequence: str, *kept: str, **values: Any) -> dict[str, Any]:
    operation = values.pop("op", "u")
    names = dict.fromkeys(kept)
    return (
        {"id": 1, "_operation": operation, "_sequence": sequence}
        | values
        | {"_kept_values": list(names.items()) or None}
    )


def arrive(*batches: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """Let versions of one key arrive; return its row, and how many rows each batch wrote."""
    stored, remembered, written = KEEPING.empty_table(), DELETES.empty_table(), []
    for batch in batches:
        arrived = pa.Table.from_pylist(batch, KEEPING)
        is_delete = np.array([it["_operation"] == "d" for it in batch], dtype=bool)
        changes = UPSERT.change(stored, remembered, arrived, is_delete)
        if len(changes.removed):
            stored = KEEPING.empty_table()
        stored = pa.concat_tables([stored, changes.written])
        remembered = pa.concat_tables([remembered, changes.deleting.select(DELETES.names)])
        written.append(len(changes.written))
    return stored.to_pylist(), written


HISTORY = [
    version("1", note="a", tags=["a"], op="c"),
    version("2", "note", tags=["b"]),
    version("3", "tags", note="c"),
    version("4", op="d"),
    version("5", "note", tags=["e"], op="c"),
    version("6", "note", "tags"),
]


@pytest.mark.parametrize(
    ("end", "note", "tags"), [(2, "a", ["b"]), (3, "c", ["b"]), (5, None, ["e"]), (6, None, ["e"])]
)
def test_the_order_and_the_cuts_of_arrival_never_matter(end: int, note: Any, tags: Any) -> None:
    history = HISTORY[:end]
    orders = list(itertools.permutations(history))
    # A hundred of many, so far apart that they include all beginnings.
    orders = orders[:: 7 if len(orders) > 200 else 1]
    for number, order in enumerate(orders):
        cut = number % (end + 1)
        [row], _ = arrive(list(order[:cut]), list(order[cut:]))
        [one_by_one], _ = arrive(*([it] for it in order))

        assert (row["note"], row["tags"], row["_sequence"]) == (note, tags, str(end)), order
        assert one_by_one == row, order


def test_a_repeat_writes_nothing() -> None:
    rows, written = arrive(HISTORY[:3], [HISTORY[2]], HISTORY[:2], [HISTORY[0]])

    assert written == [1, 0, 0, 0]
    assert rows[0]["_kept_values"] == [("tags", "2")]


def test_a_version_without_a_value_gives_none() -> None:
    [row], _ = arrive([version("1", tags=["a"], note=None)], [version("2", "tags", "note")])

    assert (row["tags"], row["note"]) == (["a"], None)
    assert row["_kept_values"] == [("note", "1"), ("tags", "1")]


def test_fields_that_are_rescued_within_a_kept_value_are_kept_with_it() -> None:
    first = version("1", note="a", _rescued_data=[("note.x", "1"), ("notes", "2")])
    later = version("2", "note", _rescued_data=[("notes", "3")])
    [row], _ = arrive([first], [later])
    [reversed_row], _ = arrive([later], [first])

    assert (row["note"], row["_rescued_data"]) == ("a", [("note.x", "1"), ("notes", "3")])
    assert reversed_row == row


def test_stored_rows_are_compared_as_their_records_were() -> None:
    rows = pa.Table.from_pylist(
        [
            version("2", "note", note="kept", tags=["b"]),
            version("1", note="a", tags=["c"]),
            version("3", "tip", _rescued_data=[("tip", "kept"), ("tip.x", "kept"), ("who", "d")]),
        ],
        KEEPING,
    )

    recorded = as_recorded(rows)

    assert recorded.select(["note", "tags"]).to_pylist() == [
        {"note": None, "tags": ["b"]},
        {"note": "a", "tags": ["c"]},
        {"note": None, "tags": None},
    ]
    assert recorded["_rescued_data"].to_pylist() == [None, None, [("who", "d")]]
