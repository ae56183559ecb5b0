"""Small files of days that have passed become one; rows, changes and other readers stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from livemart.arrow.change_sets import as_added
from livemart.delta.parquet import write_files
from livemart.delta.tags import Tag
from livemart.delta.upkeep import compaction
from livemart.delta.upkeep.old_files import old_files
from livemart.delta.version import DataFile, TableVersion
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.aged_tables import age

RELATION = "mart.panes"
_SCHEMA = pa.schema([("n", pa.int64()), ("day", pa.string()), ("at", pa.timestamp("us", "UTC"))])
_AN_HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)


def add(warehouse: Warehouse, day: str | None, numbers: range) -> None:
    """Add a row, and with it a file, for each number."""
    for number in numbers:
        at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=number)
        rows = pa.table({"n": [number], "day": [day], "at": [at]}, schema=_SCHEMA)
        warehouse.commit(RELATION, as_added(rows), Tag("e", warehouse.version(RELATION) + 1))


def files_by_day(warehouse: Warehouse) -> Counter[str | None]:
    """Count the files of the newest version by their partition."""
    return Counter(it.partition["day"].as_py() for it in warehouse.files(RELATION).files())


@pytest.fixture
def days(tmp_path: Path) -> Warehouse:
    """A table of three days in six files each, of which the last one is today."""
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, _SCHEMA, partition_by=["day"])
    for number, day in enumerate(["2026-03-01", None]):
        add(warehouse, day, range(6 * number, 6 * number + 6))
    age(warehouse.path(RELATION), days=2)
    warehouse = Warehouse(tmp_path)
    add(warehouse, "2026-03-03", range(12, 18))
    return warehouse


def test_each_day_that_has_passed_is_one_file(days: Warehouse) -> None:
    version, rows = days.version(RELATION), days.read(RELATION)

    assert days.compact(RELATION, _AN_HOUR_AGO) == 12

    assert files_by_day(days) == {"2026-03-01": 1, None: 1, "2026-03-03": 6}
    for reader in (days, Warehouse(days.root)):
        assert reader.read(RELATION).sort_by("n").equals(rows.sort_by("n"))
        assert reader.read(RELATION, version).equals(rows)
        assert reader.changes(RELATION, version, version + 1).num_rows == 0
    assert days.newest_alike(RELATION, version) == version + 1
    theirs = DeltaTable(str(days.path(RELATION))).to_pyarrow_table()
    assert theirs.sort_by("n")["n"].to_pylist() == list(range(18))
    assert days.compact(RELATION, _AN_HOUR_AGO) == 0
    assert days.version(RELATION) == version + 1


def test_a_late_row_opens_its_day_again_and_the_day_is_merged_later(days: Warehouse) -> None:
    days.compact(RELATION, _AN_HOUR_AGO)
    add(days, "2026-03-01", range(18, 20))

    assert days.compact(RELATION, _AN_HOUR_AGO) == 0
    assert days.compact(RELATION, datetime.now(UTC) + timedelta(hours=1)) == 9
    assert files_by_day(days) == {"2026-03-01": 1, None: 1, "2026-03-03": 1}


def test_time_that_is_over_leaves_the_rest_for_the_next_time(days: Warehouse) -> None:
    version = days.version(RELATION)

    assert days.compact(RELATION, _AN_HOUR_AGO, seconds=-1) == 0
    assert days.version(RELATION) == version


def test_no_more_rows_than_memory_should_hold_are_merged_at_once(
    days: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_MOST_ROWS", 4)

    assert days.compact(RELATION, _AN_HOUR_AGO) == 8
    # The rest waits until the days are quiet again.
    assert days.compact(RELATION, _AN_HOUR_AGO) == 0
    assert files_by_day(days) == {"2026-03-01": 3, None: 3, "2026-03-03": 6}
    assert sorted(days.read(RELATION)["n"].to_pylist()) == list(range(18))


def test_a_commit_in_between_is_not_undone(
    days: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*args: object) -> object:
        rows = pa.table({"n": [99], "day": ["2026-03-01"], "at": [None]}, schema=_SCHEMA)
        write_deltalake(str(days.path(RELATION)), rows, mode="append")
        monkeypatch.setattr(compaction, "write_files", write_files)
        return write_files(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "write_files", write)

    assert days.compact(RELATION, _AN_HOUR_AGO) == 0
    assert sorted(days.read(RELATION)["n"].to_pylist()) == [*range(18), 99]


def test_a_table_of_others_that_only_spark_can_write_stays_as_it_is(days: Warehouse) -> None:
    DeltaTable(str(days.path(RELATION))).alter.add_constraint({"known": "n >= 0"})

    assert days.compact(RELATION, _AN_HOUR_AGO) == 0


def test_a_partition_that_only_spark_can_read_is_left_and_the_others_are_merged(
    days: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_file = TableVersion.read_file

    def read(files: TableVersion, file: DataFile, columns: Sequence[str]) -> pa.Table:
        if file.partition["day"].as_py() is None:
            raise RefreshError("CDF_UNAVAILABLE", "its variants are in pieces", hint="none")
        return read_file(files, file, columns)

    monkeypatch.setattr(TableVersion, "read_file", read)

    assert days.compact(RELATION, _AN_HOUR_AGO) == 6
    assert files_by_day(days) == {"2026-03-01": 1, None: 6, "2026-03-03": 6}


def test_files_of_a_commit_that_was_cut_off_are_old_files_later(
    days: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compaction, "write_entry", cut_off)
    with pytest.raises(KeyboardInterrupt):
        days.compact(RELATION, _AN_HOUR_AGO)

    rows = Warehouse(days.root).read(RELATION)
    assert rows.num_rows == 18
    age(days.path(RELATION), days=8)
    storage = days.storage(RELATION)
    assert len(old_files(storage)) == 2
    storage.delete(it.name for it in old_files(storage))
    assert Warehouse(days.root).read(RELATION).equals(rows)
