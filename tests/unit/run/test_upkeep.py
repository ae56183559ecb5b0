"""Old files go by themselves, once a day; what readers see never does."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import structlog
from deltalake import DeltaTable

from livemart.arrow.change_sets import as_added
from livemart.delta.properties import is_checkpointed
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.run import upkeep
from livemart.run.upkeep import keep_up, remove_old_files
from livemart.state.atomic_files import numbers_of, write_state_file
from livemart.state.checkpoint import open_checkpoint, read_epoch
from livemart.state.counts import TableCounts
from livemart.state.kept_snapshots import keep_snapshot
from livemart.state.places import StateFolder
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog, Status
from tests.aged_tables import age, parquet_files

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source and a model, each rewritten in four versions; the log names the last one."""
    for relation in ("raw.orders", "mart.totals"):
        for number in range(4):
            rows = pa.table({"n": [number]})
            Warehouse(tmp_path).overwrite(relation, rows, Tag(f"e/{relation}/0", number))
    _append(tmp_path, 1, version=4)
    return tmp_path


def _append(root: Path, snapshot_id: int, *, version: int, status: Status = "published") -> None:
    warehouse = Warehouse(root)
    state = ModelState(version, "f", "full", None, 1, 1, 0, warehouse.table_id("mart.totals"))
    row = Snapshot(
        snapshot_id=snapshot_id,
        batch_id=snapshot_id,
        epoch="e",
        kind="refresh",
        status=status,
        as_of=None,
        sources={"raw.orders": version},
        models={"model.shop.totals": state},
        tests={},
        started_at=NOON,
        finished_at=NOON,
    )
    assert SnapshotLog(root).append(row)


def _age(root: Path) -> None:
    for folder in (root / "raw" / "orders", root / "mart" / "totals"):
        age(folder, days=8)


def _readable(root: Path) -> dict[str, list[int]]:
    """Return the versions of each table that can be read."""
    readable: dict[str, list[int]] = {}
    for relation in ("raw.orders", "mart.totals"):
        for version in range(1, 5):
            try:
                Warehouse(root).read(relation, version)
            except Exception:
                continue
            readable.setdefault(relation, []).append(version)
    return readable


def test_what_a_snapshot_names_stays(root: Path) -> None:
    _append(root, 2, version=3, status="held")
    _age(root)

    removed = {it.table: (it.count, it.error) for it in remove_old_files(root, NOON)}

    assert removed == {"mart.totals": (2, None), "raw.orders": (2, None), "snapshots": (0, None)}
    assert _readable(root) == {"raw.orders": [3, 4], "mart.totals": [3, 4]}


def test_the_version_that_readers_see_stays_however_long_another_is_held(root: Path) -> None:
    for number, version in enumerate((2, 3)):
        _append(root, 2 + number, version=version, status="published" if number == 0 else "held")
    _age(root)

    assert not any(it.error for it in remove_old_files(root, NOON))

    assert _readable(root) == {"raw.orders": [2, 3, 4], "mart.totals": [2, 3, 4]}


def test_a_version_that_readers_keep_stays_until_its_end(root: Path) -> None:
    _append(root, 2, version=2)
    _append(root, 3, version=4)
    keep_snapshot(root, 2, NOON + timedelta(hours=2))
    _age(root)

    keep_up(root, NOON - timedelta(days=1), lambda _: None)
    keep_up(root, NOON, lambda _: None)
    assert _readable(root) == {"raw.orders": [2, 4], "mart.totals": [2, 4]}

    keep_up(root, NOON + timedelta(days=1), lambda _: None)
    assert _readable(root) == {"raw.orders": [4], "mart.totals": [4]}
    assert list(StateFolder(root).kept_snapshots.iterdir()) == []


def test_a_trial_removes_nothing_and_tells_the_same(root: Path) -> None:
    _age(root)
    before = parquet_files(root)

    trial = list(remove_old_files(root, NOON, is_trial=True))

    assert parquet_files(root) == before
    assert list(remove_old_files(root, NOON)) == trial
    assert sum(it.size_bytes for it in trial) > 0


def test_files_of_the_snapshot_log_go_after_a_day(root: Path) -> None:
    _append(root, 2, version=4)
    snapshots = StateFolder(root).snapshots
    # As it does itself, every 64 rows.
    DeltaTable(str(snapshots)).optimize.compact()
    age(snapshots, days=2)

    (removed,) = [it for it in remove_old_files(root, NOON) if it.table == "snapshots"]

    assert removed.count == 2
    assert [row.snapshot_id for row in SnapshotLog(root).rows(9)] == [2, 1]


def test_old_entries_of_the_log_go_but_not_those_of_a_version_that_readers_see(
    root: Path,
) -> None:
    """deltalake 1.6 removes entries before the last checkpoint, whichever versions are read."""
    warehouse = Warehouse(root)
    for number in range(4, 34):
        tag = Tag("e/mart.totals/0", number)
        warehouse.overwrite("mart.totals", pa.table({"n": [number]}), tag)
    _append(root, 2, version=13)
    _append(root, 3, version=34, status="held")
    log = root / "mart" / "totals" / "_delta_log"
    for name in ("00000000000000000002.crc", ".00000000000000000002.json.crc"):
        (log / name).write_text("")
    past_s = (datetime.now(UTC) - timedelta(days=8)).timestamp()
    for path in log.iterdir():
        os.utime(path, (past_s, past_s))

    assert not any(it.error for it in remove_old_files(root, NOON, is_trial=True))
    assert _oldest_entry(log) == 0
    assert not any(it.error for it in remove_old_files(root, NOON))

    # From the checkpoint before it on.
    assert _oldest_entry(log) == max(_checkpoints("mart.totals", before=13))
    assert list(log.glob("*.crc")) == []
    assert Warehouse(root).read("mart.totals", 13).to_pylist() == [{"n": 12}]

    _append(root, 4, version=34)
    assert not any(it.error for it in remove_old_files(root, NOON))

    assert _oldest_entry(log) == max(_checkpoints("mart.totals", before=34))
    assert Warehouse(root).read("mart.totals").to_pylist() == [{"n": 33}]


def _checkpoints(relation: str, *, before: int) -> list[int]:
    return [version for version in range(1, before) if is_checkpointed(relation, version)]


def _oldest_entry(log: Path) -> int:
    return min(int(path.stem) for path in log.glob("*.json"))


def test_a_clock_that_jumps_ahead_takes_nothing_that_readers_see(root: Path) -> None:
    """It ends what is kept for a time; the newest and the published snapshot are not."""
    _append(root, 2, version=3, status="held")
    keep_snapshot(root, 1, NOON + timedelta(days=30))
    _age(root)
    keep_up(root, NOON, lambda _: None)

    for now in (NOON + timedelta(days=400), NOON + timedelta(days=1), NOON + timedelta(days=401)):
        keep_up(root, now, lambda _: None)

    assert _readable(root) == {"raw.orders": [3, 4], "mart.totals": [3, 4]}
    log = SnapshotLog(root)
    assert [row.snapshot_id for row in log.rows(9)] == [2, 1]
    assert log.newest_published() == log.row(1)


def test_the_checksum_that_spark_writes_goes_with_its_file(root: Path) -> None:
    _age(root)
    for path in parquet_files(root / "mart"):
        path.with_name(f".{path.name}.crc").write_text("")

    assert not any(it.error for it in remove_old_files(root, NOON))

    (left,) = parquet_files(root / "mart")
    assert [path.name for path in (root / "mart").rglob("*.crc")] == [f".{left.name}.crc"]


def test_it_is_done_once_a_day(root: Path) -> None:
    steps: list[str] = []
    _age(root)
    for hours in (0, 23):
        keep_up(root, NOON + timedelta(hours=hours), steps.append)
    assert (len(parquet_files(root / "mart")), steps) == (4, [])

    for hours in (24, 47):
        keep_up(root, NOON + timedelta(hours=hours), steps.append)
    assert (len(parquet_files(root / "mart")), steps) == (1, ["removing old files"])

    # The clock was set back.
    keep_up(root, NOON, steps.append)
    assert len(steps) == 2


@pytest.mark.parametrize(("retention", "hours"), [(30, 24), (6, 6), (0.1, 1)])
def test_a_short_retention_has_it_done_more_often(
    root: Path, retention: float, hours: float
) -> None:
    steps: list[str] = []
    for passed in (0, hours - 0.01, hours, 2 * hours - 0.01):
        now = NOON + timedelta(hours=passed)
        keep_up(root, now, steps.append, timedelta(hours=retention))

    assert len(steps) == 1


def test_a_table_that_cannot_be_read_costs_itself_alone(root: Path) -> None:
    _age(root)
    shutil.copytree(root / "mart" / "totals", root / "mart" / "broken")
    (root / "mart" / "broken" / "_delta_log" / f"{0:020}.json").write_text("{")

    StateFolder(root).upkeep.write_text("{")
    keep_up(root, NOON, lambda _: None)
    with structlog.testing.capture_logs() as events:
        keep_up(root, NOON + timedelta(days=1), lambda _: None)

    assert [(it["event"], it.get("table")) for it in events] == [
        ("old_files_not_removed", "mart.broken"),
        ("old_files_removed", None),
    ]
    assert events[1]["files"] == 6


def test_a_disk_that_is_full_costs_no_micro_batch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("livemart.state.atomic_files.replace_file", refuse)
    with structlog.testing.capture_logs() as events:
        keep_up(root, NOON, lambda _: None)

    (event,) = events
    assert (event["event"], event["table"]) == ("old_files_not_removed", str(root))
    assert "No space left" in event["error"]


def test_a_fault_is_not_met_again_after_each_micro_batch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    keep_up(root, NOON - timedelta(days=1), lambda _: None)
    steps: list[str] = []
    monkeypatch.setattr(upkeep, "look_into_tables", fail)
    with structlog.testing.capture_logs() as events:
        for hours in (0, 1, 23, 24):
            keep_up(root, NOON + timedelta(hours=hours), steps.append)

    assert [it["event"] for it in events] == ["old_files_not_removed"] * 2
    assert len(steps) == 2


def test_the_table_of_a_stage_goes_days_after_the_last_snapshot_that_names_it(root: Path) -> None:
    warehouse, stage = Warehouse(root), "_livemart_stages.totals__0a1b__1"
    warehouse.overwrite(stage, pa.table({"n": [1]}), Tag(f"e/{stage}/0", 1))
    folder, log = warehouse.path(stage), SnapshotLog(root)
    state = ModelState(0, "f", "full", None, 1, 1, 0, warehouse.table_id(stage))

    def removed(now: datetime, *, is_trial: bool = False) -> dict[str, int]:
        return {it.table: it.count for it in remove_old_files(root, now, is_trial=is_trial)}

    now = datetime.now(UTC)
    assert removed(now)[stage] == 0
    newest = log.newest()
    assert newest is not None
    log.append(replace(newest, snapshot_id=2, batch_id=2, stages={"stage.shop.totals__1": state}))
    age(folder, days=8)
    assert removed(now)[stage] == 0 and warehouse.exists(stage)
    log.append(replace(newest, snapshot_id=3, batch_id=3))
    assert removed(now, is_trial=True)[stage] > 0 and warehouse.exists(stage)
    assert removed(now)[stage] > 0
    assert not Warehouse(root).exists(stage)
    assert stage not in removed(now)


def test_what_belongs_to_an_earlier_epoch_goes_after_the_retention(root: Path) -> None:
    state = StateFolder(root)
    for _ in range(3):
        epoch = open_checkpoint(state.checkpoint, None, new_epoch=True)
        write_state_file(state.files / epoch.id / "0.json", {})
        write_state_file(state.uncounted(epoch.id) / "0.json", {})
    now = datetime.now(UTC)

    def names(now: datetime, *, is_trial: bool = False) -> list[str]:
        removed = remove_old_files(root, now, timedelta(hours=2), is_trial=is_trial)
        return [it.table for it in removed if it.count and it.table != "snapshots"]

    assert names(now + timedelta(hours=1)) == []
    assert len(names(now + timedelta(hours=3), is_trial=True)) == 4
    assert len(names(now + timedelta(hours=3))) == 4
    assert names(now + timedelta(hours=3)) == []
    assert read_epoch(state.checkpoint) == epoch
    assert numbers_of(state.files / epoch.id) == numbers_of(state.uncounted(epoch.id)) == [0]


def test_tables_that_livemart_fills_follow_the_retention_others_do_not(root: Path) -> None:
    warehouse = Warehouse(root)
    warehouse.overwrite("other.prices", pa.table({"n": [1]}), Tag("e/other.prices/0", 1))
    newest = SnapshotLog(root).newest()
    assert newest is not None
    landed = {"raw.orders": TableCounts(1, 1, 0)}
    SnapshotLog(root).append(replace(newest, snapshot_id=2, batch_id=2, landed=landed))

    for days in (-1, 0):
        keep_up(root, NOON + timedelta(days=days), lambda _: None, timedelta(hours=1))

    def kept(relation: str) -> str:
        stated = DeltaTable(str(warehouse.path(relation))).metadata().configuration
        return stated["delta.deletedFileRetentionDuration"]

    assert [kept(it) for it in ("raw.orders", "mart.totals", "other.prices")] == [
        "interval 3600 seconds",
        "interval 3600 seconds",
        "interval 7 days",
    ]


def test_small_files_of_yesterday_are_merged_and_logged(root: Path) -> None:
    warehouse = Warehouse(root)
    for number in range(5):
        rows = as_added(pa.table({"n": [10 + number]}))
        warehouse.commit("mart.totals", rows, Tag("e/mart.totals/1", number))
    before = len(warehouse.files("mart.totals"))
    _append(root, 2, version=warehouse.version("mart.totals"))
    age(root / "mart" / "totals", days=2)

    keep_up(root, datetime.now(UTC) - timedelta(days=1), lambda _: None)
    with structlog.testing.capture_logs() as events:
        keep_up(root, datetime.now(UTC), lambda _: None)

    assert [(it["event"], it["files"]) for it in events] == [("small_files_merged", before)]
    assert len(Warehouse(root).files("mart.totals")) == 1
    assert Warehouse(root).read("mart.totals").num_rows == 6
