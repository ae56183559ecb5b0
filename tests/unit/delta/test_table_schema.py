"""Values that Arrow reads as others than Spark: a VARIANT, days of the calendar of Spark 2."""

from __future__ import annotations

import json
from collections.abc import Callable
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


DAYS = pa.schema(
    [("id", pa.int64()), ("day", pa.date32()), ("seen", pa.list_(pa.timestamp("us", "UTC")))]
)
# 0001-01-01, and the same day as Spark 2 counts it.
ISO_DAY, OLD_DAY = -719_162, -719_164


@pytest.mark.parametrize(
    ("notes", "day", "column"),
    [
        ({"org.apache.spark.version": "2.4.8"}, OLD_DAY, "day"),
        ({"org.apache.spark.version": "2.4.8"}, OLD_DAY, "seen"),
        ({"org.apache.spark.version": "4.2.0", "org.apache.spark.legacyDateTime": ""}, 0, ""),
        ({"org.apache.spark.version": "4.2.0"}, ISO_DAY, ""),
        ({}, ISO_DAY, ""),
    ],
)
def test_days_of_the_calendar_of_spark_2_are_left_to_spark(
    tmp_path: Path, notes: dict[str, str], day: int, column: str
) -> None:
    """Spark 4.2.0 counts them as others when it reads such a file; pyarrow 26.0.1 does not."""
    warehouse, path = Warehouse(tmp_path), tmp_path / "mart" / "bodies"
    warehouse.create(RELATION, DAYS)
    rows = pa.table(
        {
            "id": pa.array([1]),
            "day": pa.array([day if column != "seen" else 0], pa.int32()).cast(pa.date32()),
            "seen": pa.array([[None, day * 86_400 * 10**6 if column != "day" else 0]]),
        }
    ).cast(DAYS)
    warehouse.commit(RELATION, diff(rows.slice(0, 0), rows), Tag("t", 1, {}))
    (file,) = path.glob("*.parquet")
    with pq.ParquetWriter(file, DAYS, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(notes)
    # Bounds, of which Spark writes those that it would read.
    entry = path / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    fresh = Warehouse(tmp_path)
    files = fresh.files(RELATION)
    asked = column or "day"
    is_there = pds.field(asked).is_valid()
    reads: list[Callable[[], int]] = [
        lambda: fresh.read(RELATION).num_rows,
        lambda: fresh.read(RELATION, columns=["id"], filter=is_there).num_rows,
        lambda: files.read_file(files.files()[0], DAYS.names).num_rows,
        lambda: sum(it.num_rows for it in files.batches([asked], pds.scalar(True), 5)),
        lambda: fresh.changes(RELATION, 0, 1).num_rows,
    ]

    for read in reads:
        if not column:
            assert read() == 1
            continue
        with pytest.raises(RefreshError, match=r"mart\.bodies.*calendar of Spark 2") as caught:
            read()
        assert caught.value.code == "CDF_UNAVAILABLE"
    others = [name for name in DAYS.names if name != column]
    assert fresh.read(RELATION, columns=others).num_rows == 1
