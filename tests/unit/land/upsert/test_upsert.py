"""The change of arrived rows, without refused rows and without landing's own columns."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from livemart.land.records.schema import RESCUED_TYPE, TIMESTAMP
from livemart.land.upsert.upsert import (
    KeyChanges,
    KeyVersions,
    Upsert,
    _ranks,
    as_recorded,
    canonical_text,
    decide,
    find_moved,
    moved_detail,
)
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
SCHEMA = pa.schema([("key", pa.string()), ("at", pa.int64()), ("text", pa.string())])
Row = tuple[str, int, str]
ORDERS = source(
    "orders",
    {"id": "string", "ordered_at": "timestamp", "updated_at": "timestamp"},
    keys=("id",),
    event_time_is_fixed=True,
)
# Key, event time, sequence, whether it deletes, whether it moves its key's time.
ROWS = [
    # The stored row stays, although its sequence is the highest.
    ("stored", 1, 5, False, True),
    ("stored", 2, 6, False, False),
    ("stored", None, 7, True, False),
    ("new", 4, 2, False, True),
    ("new", 3, 1, False, False),
    ("new", None, 3, False, True),
    ("tie", 8, 1, False, True),
    ("tie", 7, 1, False, False),
    ("gone", 9, 0, True, False),
    ("gone", 6, 1, False, False),
]
STORED = pa.table({"id": ["stored"], "ordered_at": [2], "updated_at": [9]})


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


def test_the_newest_sequence_wins_whatever_arrives_when() -> None:
    outcome = _decide(stored=[("a", 5, "x")], arrived=[("a", 4, "y"), ("b", 1, "z"), ("b", 2, "w")])

    assert (list(outcome.written), list(outcome.removed)) == ([2], [])


def test_nan_is_above_all_numbers_and_null_above_nan() -> None:
    ranks = _ranks(pa.chunked_array([[float("nan"), 0.0, None], [-0.0, float("nan")]]))

    assert ranks.tolist() == [2, 1, 3, 1, 2]


def test_a_delete_wins_at_an_equal_sequence_and_is_remembered() -> None:
    outcome = _decide(stored=[("a", 5, "x")], arrived=[("a", 5, "y"), ("a", 5, "-")], deletes=[1])

    assert (list(outcome.written), list(outcome.deleting), list(outcome.removed)) == ([], [1], [0])


def test_an_older_version_of_a_deleted_key_stays_deleted_and_a_newer_one_returns() -> None:
    remembered = [("a", 5), ("b", 5)]

    outcome = _decide(remembered=remembered, arrived=[("a", 5, "x"), ("b", 6, "y")])

    assert (list(outcome.written), list(outcome.deleting)) == ([1], [])


def test_the_greater_text_wins_a_tie_and_a_repeat_changes_nothing() -> None:
    repeat = _decide(stored=[("a", 5, "m")], arrived=[("a", 5, "m"), ("a", 5, "b")])
    greater = _decide(stored=[("a", 5, "m")], arrived=[("a", 5, "z"), ("a", 5, "n")])

    assert (list(repeat.written), list(repeat.removed)) == ([], [])
    assert (list(greater.written), list(greater.removed)) == ([0], [0])


@pytest.mark.parametrize(
    ("kind", "lesser", "greater"),
    [
        (pa.map_(pa.string(), pa.int64()), [("a", 2), ("b", 1)], [("b", 1), ("a", 2)]),
        (pa.float64(), -0.0, 0.0),
        (pa.list_(pa.float64()), [-0.0], [0.0]),
    ],
)
def test_equal_rows_that_are_not_identical_tie_whichever_arrives_first(
    kind: pa.DataType, lesser: object, greater: object
) -> None:
    schema = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", kind)])
    one, other = (
        pa.Table.from_pylist([{"key": "a", "at": 5, "value": value}], schema)
        for value in (lesser, greater)
    )
    names, known = tuple(schema.names), one.slice(1).select(["key", "at"])

    def written(stored: pa.Table, arrived: pa.Table) -> list[int]:
        no_delete = np.zeros(1, dtype=bool)
        versions = KeyVersions(("key",), ("at",), names, stored, known, arrived, no_delete)
        return list(decide(versions).written)

    assert (written(one, other), written(other, one)) == ([0], [])
    assert (written(one, one), written(other, other)) == ([], [])


def test_nothing_known_and_nothing_arrived_is_no_change() -> None:
    outcome = _decide()

    assert [len(part) for part in (outcome.written, outcome.deleting, outcome.removed)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_any_split_and_order_of_arrivals_gives_the_same_rows(seed: int) -> None:
    source = random.Random(seed)
    versions = [
        (
            (source.choice("abc"), source.randrange(4), source.choice(["p", "q", "r"])),
            source.random() < 0.25,
        )
        for _ in range(20)
    ]
    expected = _land([versions])

    shuffled = source.sample(versions, len(versions))
    cuts = sorted(source.sample(range(1, 20), 4))
    pieces = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, 20], strict=True)]
    actual = _land([*pieces, shuffled[:5]])

    assert actual == expected


def test_the_canonical_text_leaves_nulls_out_and_sorts_names() -> None:
    actual = canonical_text({"b": 1, "a": [{"d": None, "c": "ü"}], "n": None})

    assert actual == '{"a":[{"c":"ü","d":null}],"b":1}'


def _land(batches: list[list[tuple[Row, bool]]]) -> tuple[list[Row], list[tuple[str, int]]]:
    """A table and its remembered deletes after some batches."""
    stored: list[Row] = []
    remembered: dict[str, int] = {}
    for batch in batches:
        arrived = [row for row, _ in batch]
        deletes = [position for position, (_, is_delete) in enumerate(batch) if is_delete]
        outcome = _decide(stored, list(remembered.items()), arrived, deletes)
        removed = set(outcome.removed.tolist())
        stored = [row for position, row in enumerate(stored) if position not in removed]
        stored += [arrived[position] for position in outcome.written]
        remembered |= {arrived[position][0]: arrived[position][1] for position in outcome.deleting}
    return sorted(stored), sorted(
        (key, at) for key, at in remembered.items() if key not in {row[0] for row in stored}
    )


def _decide(
    stored: list[Row] = [],  # noqa: B006
    remembered: list[tuple[str, int]] = [],  # noqa: B006
    arrived: list[Row] = [],  # noqa: B006
    deletes: list[int] = [],  # noqa: B006
) -> Any:
    mask = np.zeros(len(arrived), dtype=bool)
    mask[deletes] = True
    return decide(
        KeyVersions(
            ("key",),
            ("at",),
            ("key", "at", "text"),
            _table(stored),
            _table([(*row, "") for row in remembered]).select(["key", "at"]),
            _table(arrived),
            mask,
        )
    )


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@pytest.mark.parametrize("order", [*permutations(range(3)), *permutations(range(3, 6))])
def test_the_order_of_arrival_decides_nothing(order: tuple[int, ...]) -> None:
    rows = [*(ROWS[place] for place in order), *ROWS]
    arrived = pa.table(
        {
            "id": [row[0] for row in rows],
            "ordered_at": [row[1] for row in rows],
            "updated_at": [row[2] for row in rows],
        }
    )

    moved = find_moved(
        ORDERS.row_rules, "ordered_at", STORED, arrived, np.array([row[3] for row in rows])
    )

    assert moved.tolist() == [row[4] for row in rows]


def test_a_dead_letter_names_the_column() -> None:
    assert moved_detail(ORDERS).startswith("ordered_at differs from the key's")
