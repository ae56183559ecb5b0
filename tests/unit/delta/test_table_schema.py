"""A VARIANT in a Delta table is one for the small lane: read, changed, written, checkpointed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.schema import Schema

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.arrow.types import plain_table
from livemart.arrow.variants import as_structs
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
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


def test_variants_in_pieces_are_no_rows_without_them(tmp_path: Path) -> None:
    """pyarrow 26.0.1 casts `typed_value` away in silence where `value` holds the other fields."""
    warehouse, path = Warehouse(tmp_path), tmp_path / "mart" / "bodies"
    path.parent.mkdir()
    DeltaTable.create(str(path), logged())
    rows = nested('{"a":1}')
    warehouse.commit(RELATION, diff(rows.slice(0, 0), rows), Tag("t", 1, {}))
    (file,) = path.glob("*.parquet")
    parts = pa.array([{"metadata": b"", "value": b"", "typed_value": 1}])
    pieces = as_structs(plain_table(rows)).drop_columns(["l"])
    pieces = pieces.append_column("l", pa.ListArray.from_arrays([0, 1], parts))
    pq.write_table(pieces, file)
    fresh = Warehouse(tmp_path)
    files = fresh.files(RELATION)

    for read in (
        lambda: fresh.read(RELATION),
        lambda: fresh.read(RELATION, filter=pds.field("v").is_valid()),
        lambda: files.read_file(files.files()[0], ["l"]),
        lambda: list(files.batches(["l"], pds.scalar(True), 5)),
        lambda: fresh.changes(RELATION, 0, 1),
    ):
        with pytest.raises(RefreshError, match=r"mart\.bodies.*column l: .*shredded") as caught:
            read()
        assert caught.value.code == "CDF_UNAVAILABLE"
    assert fresh.read(RELATION, columns=["v"]).num_rows == 1
