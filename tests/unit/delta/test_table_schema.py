"""A VARIANT in a Delta table is one for the small lane: read, changed, written, checkpointed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import Schema

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.arrow.types import plain_table
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from tests.unit.arrow.test_variants import NESTED, nested

RELATION = "mart.bodies"
_FIELD = {"nullable": True, "metadata": {}}


def logged() -> Schema:
    """Return the columns of `NESTED` as the log of a table spells them."""
    element = {"type": "array", "elementType": "variant", "containsNull": True}
    fields = [
        {"name": "v", "type": "variant", **_FIELD},
        {"name": "l", "type": element, **_FIELD},
        {
            "name": "s",
            "type": {
                "type": "struct",
                "fields": [
                    {"name": "x", "type": "variant", **_FIELD},
                    {"name": "n", "type": "integer", **_FIELD},
                ],
            },
            **_FIELD,
        },
        {
            "name": "m",
            "type": {
                "type": "map",
                "keyType": "string",
                "valueType": element,
                "valueContainsNull": True,
            },
            **_FIELD,
        },
    ]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def diff(old: pa.Table, new: pa.Table) -> pa.Table:
    rows = pa.concat_tables([plain_table(old), plain_table(new)]).combine_chunks()
    is_new = [False] * old.num_rows + [True] * new.num_rows
    counts = pa.array(is_new).cast(pa.int64())
    gone = pa.array([not it for it in is_new]).cast(pa.int64())
    return rows.append_column(OLD_COUNT, gone).append_column(NEW_COUNT, counts)


def test_variants_are_committed_and_read_by_value(tmp_path: Path) -> None:
    path = tmp_path / "mart" / "bodies"
    path.parent.mkdir()
    DeltaTable.create(str(path), logged(), configuration={"delta.enableChangeDataFeed": "true"})
    warehouse = Warehouse(tmp_path)
    rows = nested('{"a":1,"b":2}', None, "null")
    warehouse.commit(RELATION, diff(rows.slice(0, 0), rows), Tag("t", 1, {}))
    # The same row in other bytes is what goes.
    gone, come = nested('{"b":2,"a":1}'), nested('{"a":1.0}')
    for number in range(2, 12):
        warehouse.commit(RELATION, diff(gone, come), Tag("t", number, {}))
        gone, come = come, gone

    fresh = Warehouse(tmp_path)

    assert fresh.arrow_schema(RELATION) == NESTED
    assert fresh.files(RELATION).read(["v"]).num_rows == 3
    expected = plain_table(pa.concat_tables([rows.slice(1), gone]))
    read = fresh.read(RELATION).to_pylist()
    assert sorted(map(str, read)) == sorted(map(str, expected.to_pylist()))
    assert fresh.changes(RELATION, 1, 11).num_rows == 0
    change = fresh.changes(RELATION, 1, 2)
    assert sorted(change.column(WEIGHT).to_pylist()) == [-1, 1]
    assert (path / "_delta_log" / "_last_checkpoint").exists()
