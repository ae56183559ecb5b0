"""A file is old once no version within the retention reads it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.tags import Tag
from livemart.delta.upkeep.old_files import old_files
from livemart.delta.warehouse import Warehouse
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage
from tests.aged_tables import age, parquet_files

_RELATION = "shop.prices"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table, partitioned by a name with a blank, of which each commit replaces the one row."""
    warehouse = Warehouse(tmp_path)
    schema = pa.schema([("price", pa.int64()), ("dish", pa.string())])
    warehouse.create(_RELATION, schema, partition_by=["dish"])
    for price in range(1, 4):
        _set_price(tmp_path, price)
    return warehouse.path(_RELATION)


def _set_price(root: Path, price: int) -> None:
    old = [price - 1] if price > 1 else []
    rows = {
        "price": [price, *old],
        "dish": ["pad thai"] * (1 + len(old)),
        OLD_COUNT: [0, *(1 for _ in old)],
        NEW_COUNT: [1, *(0 for _ in old)],
    }
    Warehouse(root).commit(_RELATION, pa.table(rows), Tag("e/shop.prices/0", price))


def _prices(folder: Path, version: int | None = None) -> list[int]:
    rows = Warehouse(folder.parents[1]).read(_RELATION, version)
    return list(rows.column("price").to_pylist())


def old_names(table: Storage, kept_versions: Collection[int] = ()) -> list[str]:
    """Return the names of old files, whose sizes are those of the files."""
    files = old_files(table, kept_versions)
    assert all(table.head(file.name) == file for file in files)
    return [file.name for file in files]


def test_nothing_is_old_within_the_retention(folder: Path) -> None:
    age(folder, days=6)

    assert old_names(open_storage(folder)) == []


def test_what_is_older_is_all_but_the_newest_version(folder: Path) -> None:
    age(folder, days=8)
    before, log = parquet_files(folder), sorted((folder / "_delta_log").iterdir())

    open_storage(folder).delete(old_names(open_storage(folder)))

    assert (len(before), len(parquet_files(folder))) == (5, 1)
    assert _prices(folder) == [3]
    assert sorted((folder / "_delta_log").iterdir()) == log


def test_versions_that_are_kept_stay_readable(folder: Path) -> None:
    age(folder, days=8)

    # That of 99 can no longer be read, or not yet: it has no file.
    open_storage(folder).delete(old_names(open_storage(folder), [2, 99]))

    assert (_prices(folder, 2), _prices(folder)) == ([2], [3])


def test_where_a_version_that_is_kept_cannot_be_read_nothing_is_old(folder: Path) -> None:
    age(folder, days=8)
    DeltaTable(str(folder)).create_checkpoint()
    (folder / "_delta_log" / f"{1:020}.json").write_text("{")

    assert old_files(open_storage(folder))
    with pytest.raises(DeltaError):
        old_files(open_storage(folder), [2])


def test_changes_of_the_last_days_stay_readable(folder: Path) -> None:
    age(folder, days=8)
    _set_price(folder.parents[1], 4)

    open_storage(folder).delete(old_names(open_storage(folder)))

    changes = Warehouse(folder.parents[1]).changes(_RELATION, 3, 4)
    assert sorted(changes.column("price").to_pylist()) == [3, 4]
    assert _prices(folder, 3) == [3]


def test_what_a_writer_has_just_begun_is_not_old(folder: Path) -> None:
    age(folder, days=8)
    table, draft = open_storage(folder), "dish=pad%20thai/part-0.parquet"
    table.put(draft, b"begun")

    assert draft not in old_names(table)
