"""A table keeps old files for as long as the operator says, unless it says so itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.properties import RETENTION, TABLE_PROPERTIES
from livemart.delta.warehouse import Warehouse
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag

DAY = timedelta(days=1)
_FILES, _LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def kept(warehouse: Warehouse) -> tuple[str | None, str | None]:
    """Return how long a table says that it keeps files, and entries of its log."""
    stated = DeltaTable(str(warehouse.path(RELATION))).metadata().configuration
    return stated.get(_FILES), stated.get(_LOG)


def test_a_table_follows_the_setting_and_no_reader_sees_a_change(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    warehouse.changes(RELATION, 0, 1)

    assert not warehouse.keep_for(RELATION, RETENTION)
    assert warehouse.keep_for(RELATION, timedelta(hours=36))
    assert not warehouse.keep_for(RELATION, timedelta(hours=36))
    assert kept(warehouse) == ("interval 129600 seconds", "interval 129600 seconds")
    assert warehouse.keep_for(RELATION, 30 * DAY)

    assert kept(warehouse) == ("interval 30 days", "interval 30 days")
    cold = Warehouse(warehouse.root)
    for reader in (warehouse, cold):
        assert reader.data_changed_between(RELATION, 1, 3) == []
        assert reader.newest_alike(RELATION, 1) == 3
        assert reader.changes(RELATION, 1, 3).num_rows == 0
        assert reader.arrow_schema(RELATION).equals(SMALL)
    warehouse.commit(RELATION, diff((2, "b", 0, 1)), tag(2))
    assert warehouse.changes(RELATION, 1, 4).num_rows == 1
    stated = DeltaTable(str(warehouse.path(RELATION))).metadata().configuration
    others = TABLE_PROPERTIES.keys() - {_FILES, _LOG}
    assert {name: stated[name] for name in others} == {
        name: TABLE_PROPERTIES[name] for name in others
    }


def test_what_a_table_says_itself_stays(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SMALL)
    DeltaTable(str(warehouse.path(RELATION))).alter.set_table_properties({_FILES: "interval 1 day"})

    assert warehouse.keep_for(RELATION, 30 * DAY)
    assert kept(warehouse) == ("interval 1 day", "interval 30 days")
    assert not warehouse.keep_for(RELATION, 30 * DAY)


def test_a_table_of_others_is_left_alone(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    DeltaTable.create(str(warehouse.path(RELATION)), pa.schema([("n", pa.int64())]))

    assert not warehouse.keep_for(RELATION, DAY)
    assert kept(warehouse) == (None, None)


@pytest.mark.parametrize("kind", ["SET TBLPROPERTIES by deltalake", "another schema"])
def test_metadata_that_others_exchange_are_a_change(warehouse: Warehouse, kind: str) -> None:
    warehouse.create(RELATION, SMALL)
    table = DeltaTable(str(warehouse.path(RELATION)))
    if kind == "another schema":
        warehouse.add_columns(RELATION, [pa.field("more", pa.int64())], tag(1))
    else:
        table.alter.set_table_properties({"delta.appendOnly": "false"})

    (entry,) = warehouse.data_changed_between(RELATION, 0, 1)
    assert entry is not None and entry.table_id == warehouse.table_id(RELATION)
