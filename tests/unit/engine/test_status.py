from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from livemart.engine.status import read_status, render
from livemart.publish.snapshots import Kind, Snapshot, SnapshotLog

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PANE = timedelta(minutes=5)


def test_panes_without_a_snapshot_are_counted(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    for number, (kind, as_of) in enumerate(
        [
            ("build", NOON),
            ("refresh", NOON + PANE),
            ("refresh", NOON + PANE),
            ("refresh", NOON + 4 * PANE),
            ("refresh", None),
        ],
        1,
    ):
        log.append(_snapshot(number, kind, as_of))  # type: ignore[arg-type]

    found = read_status(tmp_path, every=PANE, pane=PANE, now=NOON, limit=4)

    assert [row.snapshot_id for row in found.snapshots] == [5, 4, 3, 2]
    assert [row.skipped_panes for row in found.snapshots] == [0, 2, 0, 0]
    assert found.to_json()["snapshots"][1]["skipped_panes"] == 2
    assert "skipped panes" in render(found)


def _snapshot(number: int, kind: Kind, as_of: datetime | None) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        epoch="epoch",
        batch_id=number,
        kind=kind,
        as_of=as_of,
        sources={},
        models={},
        tests={},
        status="published",
        started_at=NOON,
        finished_at=NOON,
    )
