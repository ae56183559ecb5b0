"""Values that records do not hold are the same whatever the order and the batches of arrival."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from livemart.land.upsert.kept_values import as_recorded
from livemart.land.upsert.upsert import Upsert
from livemart.project.graph import RowRules

LANDED = pa.schema(
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
DELETES = pa.schema([LANDED.field(name) for name in ("id", "_sequence", "_batch_id")])
UPSERT = Upsert(RowRules(("id",), ("_sequence",)), None)


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
    stored, remembered, written = LANDED.empty_table(), DELETES.empty_table(), []
    for batch in batches:
        arrived = pa.Table.from_pylist(batch, LANDED)
        is_delete = np.array([it["_operation"] == "d" for it in batch], dtype=bool)
        changes = UPSERT.change(stored, remembered, arrived, is_delete)
        if len(changes.removed):
            stored = LANDED.empty_table()
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


def test_stored_rows_are_compared_as_their_records_were() -> None:
    rows = pa.Table.from_pylist(
        [version("2", "note", note="kept", tags=["b"]), version("1", note="a", tags=["c"])], LANDED
    )

    actual = as_recorded(rows).select(["note", "tags"]).to_pylist()

    assert actual == [{"note": None, "tags": ["b"]}, {"note": "a", "tags": ["c"]}]
