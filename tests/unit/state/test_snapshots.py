"""The snapshot log, on Delta tables of deltalake."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from livemart.errors import PublishError
from livemart.state.counts import TableCounts
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog
from livemart.storage.location import StoragePlace

NOON = datetime(2026, 1, 5, 12, 0, 0, 123_456, tzinfo=UTC)


def test_an_empty_warehouse_has_no_snapshot(place: StoragePlace) -> None:
    log = SnapshotLog(place)

    assert (log.newest(), log.newest_published(), log.rows(5)) == (None, None, [])


def test_a_row_is_read_as_it_was_written(place: StoragePlace) -> None:
    snapshot = make_snapshot(1)

    SnapshotLog(place).append(snapshot)

    assert SnapshotLog(place).newest() == snapshot


def test_a_row_without_anything_optional_is_read_as_it_was_written(place: StoragePlace) -> None:
    bare = replace(make_snapshot(1), as_of=None, sources={}, models={}, tests={}, landed={})

    SnapshotLog(place).append(bare)

    assert SnapshotLog(place).newest() == bare


def test_a_warehouse_may_have_any_name(tmp_path: Path) -> None:
    warehouse = tmp_path / "joe's 100% ware house"
    snapshot = make_snapshot(1)

    SnapshotLog(warehouse).append(snapshot)

    assert SnapshotLog(warehouse).newest() == snapshot


def test_an_epoch_and_batch_has_one_row(place: StoragePlace) -> None:
    log = SnapshotLog(place)

    written = [
        log.append(make_snapshot(1)),
        log.append(make_snapshot(1)),
        SnapshotLog(place).append(make_snapshot(2, batch_id=1)),
        log.append(make_snapshot(2)),
        log.append(make_snapshot(3, epoch="another", batch_id=0)),
    ]

    assert written == [True, False, False, True, True]
    assert [row.snapshot_id for row in log.rows(9)] == [3, 2, 1]


def test_readers_stay_at_the_newest_published_row(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    for number in range(1, 41):
        log.append(make_snapshot(number, is_held=number > 3))

    newest, published = log.newest(), SnapshotLog(tmp_path).newest_published()

    assert newest is not None and newest.snapshot_id == 40
    assert published is not None and published.snapshot_id == 3


def test_a_log_of_held_rows_has_nothing_published(place: StoragePlace) -> None:
    log = SnapshotLog(place)
    log.append(make_snapshot(1, is_held=True))

    assert log.newest_published() is None


def test_a_reader_sees_rows_that_another_wrote_meanwhile(place: StoragePlace) -> None:
    writer, reader = SnapshotLog(place), SnapshotLog(place)
    writer.append(make_snapshot(1))
    first = reader.newest()
    writer.append(make_snapshot(2))

    second = reader.newest()

    assert first is not None and second is not None
    assert (first.snapshot_id, second.snapshot_id) == (1, 2)
    assert [row.snapshot_id for row in reader.rows(1)] == [2]


def test_many_rows_stay_in_few_files_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.state.snapshots._COMPACT_EVERY", 8)
    log = SnapshotLog(tmp_path)
    for number in range(1, 20):
        log.append(make_snapshot(number))

    files = DeltaTable(str(tmp_path / "_livemart" / "snapshots")).file_uris()

    assert len(files) < 10
    assert [row.snapshot_id for row in SnapshotLog(tmp_path).rows(500)] == list(range(19, 0, -1))
    assert [row.snapshot_id for row in log.rows(3)] == [19, 18, 17]


def test_any_delta_reader_finds_versions_by_name(tmp_path: Path) -> None:
    SnapshotLog(tmp_path).append(make_snapshot(7))

    table = pa.table(DeltaTable(str(tmp_path / "_livemart" / "snapshots")).scan())

    assert table.column("sources").to_pylist() == [[("bronze.orders", 7)]]
    assert table.column("models")[0].as_py()[0][1]["strategy"] == "signed"


def test_a_row_is_not_written_behind_one_that_its_writer_has_not_seen(
    place: StoragePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake 1.6 appends again, behind it, unless it is asked for no further attempt."""
    log, late = SnapshotLog(place), SnapshotLog(place)
    log.append(make_snapshot(1))
    late.newest()
    seen = late._table
    log.append(make_snapshot(2))
    monkeypatch.setattr(late, "_open", lambda: seen)

    with pytest.raises(PublishError, match="SNAPSHOT_NOT_WRITTEN"):
        late.append(make_snapshot(2, epoch="e2"))

    assert log.rows(9) == [make_snapshot(2), make_snapshot(1)]


def test_times_of_another_zone_are_kept_as_the_same_instant(place: StoragePlace) -> None:
    berlin = NOON.astimezone(timezone(timedelta(hours=1)))

    SnapshotLog(place).append(replace(make_snapshot(1), as_of=berlin))

    newest = SnapshotLog(place).newest()
    assert newest is not None and newest.as_of == NOON
    assert newest.as_of.tzinfo is UTC


def test_a_log_that_an_earlier_version_began_is_read_and_widened(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    log.append(make_snapshot(1))
    path = str(tmp_path / "_livemart" / "snapshots")
    added = ["test_fingerprints", "drift", "stages", "stages_aside"]
    rows = DeltaTable(path).to_pyarrow_table().drop_columns(added)
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")
    before = SnapshotLog(tmp_path).newest()

    stages = {"stage.m.top__1": next(iter(make_snapshot(1).models.values()))}
    newest = replace(make_snapshot(2), stages=stages)
    SnapshotLog(tmp_path).append(newest)

    assert before == replace(make_snapshot(1), test_fingerprints={}, drift={})
    assert SnapshotLog(tmp_path).rows(2) == [newest, before]
    assert before is not None and before.stored == before.models


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "_livemart").write_text("a file where a folder belongs")

    with pytest.raises(PublishError, match="SNAPSHOT_NOT_WRITTEN"):
        SnapshotLog(tmp_path).append(make_snapshot(1))


def make_snapshot(
    number: int, *, epoch: str = "e1", batch_id: int | None = None, is_held: bool = False
) -> Snapshot:
    state = ModelState(
        version=number,
        fingerprint="f" * 64,
        strategy="signed",
        reason=None,
        rows_changed=118,
        took_ms=830,
        generation=0,
        table_id="t",
    )
    return Snapshot(
        snapshot_id=number,
        epoch=epoch,
        batch_id=number if batch_id is None else batch_id,
        kind="refresh",
        as_of=NOON,
        sources={"bronze.orders": number},
        models={"model.shop.totals": state, "model.shop.trend": replace(state, reason="FIRST")},
        tests={"test.shop.unique": "pass"},
        status="held" if is_held else "published",
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=2),
        landed={"bronze.orders": TableCounts(produced=5, landed=3, superseded=1, dead_letters=1)},
        test_fingerprints={"test.shop.unique": "a" * 64},
        drift={
            "bronze.orders": (
                DriftedField(DriftKind.ADDED, "tip"),
                DriftedField(DriftKind.UNDECLARED, "fee", "string", ("totals", "trend")),
            )
        },
    )


def test_old_snapshots_are_forgotten_but_for_those_that_are_of_use(place: StoragePlace) -> None:
    log = SnapshotLog(place)
    for number in range(1, 8):
        row = make_snapshot(number, is_held=number > 5)
        models = row.models
        if number <= 2:
            # For a removed model the second row is the last to name its table.
            models = {"model.shop.gone": replace(models["model.shop.totals"], table_id="gone")}
        finished_at = NOON + timedelta(days=number)
        log.append(replace(row, models=models, finished_at=finished_at))

    log.forget(NOON + timedelta(days=7), others=[3])

    # The last to name a table, one that is kept, the one that readers see, the newest.
    assert [row.snapshot_id for row in log.rows(9)] == [7, 5, 3, 2]
    assert log.model_tables()["gone"] == "model.shop.gone"
    assert log.newest_published() == log.row(5)
    assert not log.append(make_snapshot(7)), "the batch is written again"
    assert log.append(make_snapshot(8))


def test_a_log_without_rows_forgets_nothing(place: StoragePlace) -> None:
    SnapshotLog(place).forget(NOON)

    assert SnapshotLog(place).rows(1) == []
