from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from livemart.inspect.status import read_status, render_status
from livemart.land.sources.files.stream import place_slots
from livemart.land.sources.log_looks import LogLooks
from livemart.state.counts import TableCounts
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.last_run import LastRun, NewestBatch, TestStanding, keep_last_run
from livemart.state.places import StateFolder
from livemart.state.refusals import ProjectRefusal, note_refusal
from livemart.state.snapshots import (
    RELEASE,
    Kind,
    ModelState,
    Snapshot,
    SnapshotLog,
    how_to_show_rows,
)
from tests.deliveries import Shop, lines, order

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

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON, limit=4)

    assert [row.snapshot_id for row in status.snapshots] == [5, 4, 3, 2]
    assert [row.skipped_panes for row in status.snapshots] == [0, 2, 0, 0]
    assert asdict(status)["snapshots"][1]["skipped_panes"] == 2
    assert "skipped panes" in render_status(status)


def test_failures_of_strategies_are_counted_by_model(tmp_path: Path) -> None:
    failed = ModelState(4, "f", "full", "STRATEGY_FAILED", 1, 2, 0, "t")
    for number in (1, 2):
        models = {"model.m.totals": failed, "model.m.sums": replace(failed, reason=None)}
        SnapshotLog(tmp_path).append(replace(_snapshot(number, "refresh", None), models=models))

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON)

    assert "STRATEGY_FAILED model.m.totals: recomputed in full, 2 of these" in render_status(status)
    content = json.loads(json.dumps(asdict(status), default=str))
    assert content["strategy_failures"] == {"model.m.totals": 2}


def test_status_tells_models_of_two_packages_apart(tmp_path: Path) -> None:
    rebuilt = ModelState(4, "f", "full", "SQL_CHANGED", 1, 2, 0, "t")
    filled = replace(rebuilt, reason="FILLED_BY_HOOKS")
    models = {"model.shop.runs": filled, "model.crm.runs": rebuilt, "model.shop.days": rebuilt}
    SnapshotLog(tmp_path).append(replace(_snapshot(1, "refresh", None), models=models))

    (row,) = read_status(tmp_path, every=PANE, pane=PANE, now=NOON).snapshots

    assert sorted(row.rebuilt) == ["crm.runs: SQL_CHANGED", "days: SQL_CHANGED"]
    assert row.filled == ("shop.runs",)


def test_counts_are_those_of_the_listed_snapshots_and_of_each(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    for number, landed in enumerate(
        [
            {"bronze.orders": TableCounts(9, 9, 0, 0)},
            {"bronze.orders": TableCounts(5, 3, 1, 1)},
            {"bronze.orders": TableCounts(4, 2, 0, 2), "bronze.visits": TableCounts(1, 1, 0, 0)},
        ],
        1,
    ):
        log.append(replace(_snapshot(number, "refresh", None), landed=landed))

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON, limit=2)

    sums = [
        (source.relation, source.produced, source.landed, source.superseded, source.dead_letters)
        for source in status.sources
    ]
    assert sums == [("bronze.orders", 9, 5, 1, 3), ("bronze.visits", 1, 1, 0, 0)]
    content = json.loads(json.dumps(asdict(status), default=str))
    assert [row["landed"] for row in content["snapshots"]] == [
        {
            "bronze.orders": {"produced": 4, "landed": 2, "superseded": 0, "dead_letters": 2},
            "bronze.visits": {"produced": 1, "landed": 1, "superseded": 0, "dead_letters": 0},
        },
        {"bronze.orders": {"produced": 5, "landed": 3, "superseded": 1, "dead_letters": 1}},
    ]
    text = render_status(status).splitlines()
    title = text.index("landed tables, with the records of the last 2 snapshots")
    assert text[title + 2].split() == ["bronze.orders", "-", "-", "9", "5", "1", "3", "-"]
    only = render_status(read_status(tmp_path, every=PANE, pane=PANE, now=NOON, limit=1))
    assert "with the records of the last snapshot\n" in only


def test_what_waits_in_files_and_in_logs_is_told_in_the_same_columns(tmp_path: Path) -> None:
    landing, checkpoint = tmp_path / "landing", StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"bronze.files": "files/*"})
    (landing / "files").mkdir(parents=True)
    path = landing / "files" / "1"
    path.write_bytes(b"x" * 250_000)
    (landing / "flies.csv").touch()
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    looks = LogLooks(tmp_path, ["bronze.log", "bronze.idle", "bronze.away"])
    looks.answered(["bronze.log"], NOON, {"p0": 1_500, "p1": 9}, {"p0": 300}, None)
    looks.answered(["bronze.idle"], NOON, {"p0": 9}, {"p0": 9}, None)
    looks.missed(["bronze.away"], NOON, "outbox: its end: ConnectionError: no route to host")
    unread = read_status(tmp_path, every=PANE, pane=PANE, landing=landing, now=NOON + PANE)
    counts = TableCounts(1, 1, 0, 0)
    SnapshotLog(tmp_path).append(
        replace(
            _snapshot(1, "build", NOON),
            landed=dict.fromkeys(("bronze.files", "bronze.log", "bronze.idle"), counts),
        )
    )

    status = read_status(tmp_path, every=PANE, pane=PANE, landing=landing, now=NOON + PANE)

    away, files, idle, log = asdict(status)["sources"]
    names = ("waiting_records", "waiting_files", "waiting_bytes", "waiting_s", "look_age_s")
    assert [[row[name] for name in names] for row in (files, log, idle, away)] == [
        [None, 1, 250_000, 300.0, None],
        [1_209, None, None, 300.0, 300.0],
        [0, None, None, 0.0, 300.0],
        [None, None, None, 0.0, None],
    ]
    assert log["waiting_partitions"] == {"p0": 1_200, "p1": 9}
    assert idle["waiting_partitions"] == {"p0": 0}
    assert away["away_s"] == 300.0
    told = (
        "away bronze.away for 5m: outbox: its end: ConnectionError: no route to host\n"
        "  next: nothing of it lands until it is back; a stream waits for it"
    )
    text = render_status(status)
    told += (
        "\nunread flies.csv: no source reads it; bronze.files reads files/*: "
        "correct that `path`, or the name"
    )
    assert told in text
    assert "1 file, 0.2 MB, 5m" in text
    assert "1,209 records (p0: 1,200), 5m, seen 5m ago" in text
    assert render_status(unread) == f"no snapshot yet\n{told}\n  next: run `build`"


def test_drift_of_the_listed_snapshots_is_told_with_what_to_do(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    tip, fee = DriftedField(DriftKind.ADDED, "tip"), DriftedField(DriftKind.ADDED, "fee")
    gone, kept = (
        DriftedField(DriftKind.UNDECLARED, name, "string", ("totals",)) for name in ("gone", "kept")
    )
    for number, fields in enumerate([(tip,), (fee, gone), (tip, kept)], 1):
        row = replace(_snapshot(number, "refresh", None), drift={"bronze.orders": fields})
        log.append(row)

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON, limit=2)

    # A field that was undeclared may be declared now.
    assert json.loads(json.dumps(asdict(status), default=str))["drift"] == {
        "bronze.orders": [
            {"kind": "added", "name": "fee", "note": "", "unused_by": []},
            {"kind": "added", "name": "tip", "note": "", "unused_by": []},
            {"kind": "undeclared", "name": "kept", "note": "string", "unused_by": ["totals"]},
        ]
    }
    lines = render_status(status).splitlines()
    start = lines.index("drift bronze.orders: added fee; tip")
    assert lines[start + 1 : start + 4] == [
        f"  next: {DriftKind.ADDED.next_step}",
        "drift bronze.orders: undeclared kept (string), unused by totals",
        f"  next: {DriftKind.UNDECLARED.next_step}",
    ]


def test_freshness_is_the_age_of_the_newest_landing(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path)
    shop.land(0, shop.deliver("orders/1.jsonl", lines([order("a"), order("b")])))
    shop.now += timedelta(minutes=2)
    batch = shop.land(1, shop.deliver("orders/2.jsonl", lines([order("c")])))
    landed = {"bronze.orders": TableCounts(3, 3, 0, 0)}
    SnapshotLog(shop.warehouse.root).append(
        replace(_snapshot(1, "build", NOON), sources=batch.versions, landed=landed)
    )

    later = NOON + timedelta(minutes=5)
    status = read_status(shop.warehouse.root, every=PANE, pane=PANE, now=later)

    (orders,) = status.sources
    assert (orders.landed_at, orders.freshness_s, orders.rows) == (shop.now, 180.0, 3)
    shown = render_status(status).splitlines()
    assert ["bronze.orders", "3m", "3"] in [line.split()[:3] for line in shown]


def test_lag_is_that_of_a_refresh_and_a_held_snapshot_leaves_readers_behind(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    log.append(_snapshot(1, "build", NOON))
    rebuilt = ModelState(
        version=1,
        fingerprint="f",
        strategy="full",
        reason="NEW_MODEL",
        rows_changed=7,
        took_ms=1,
        generation=1,
        table_id="t",
    )
    refused = replace(
        _snapshot(2, "refresh", NOON + PANE),
        status="held",
        tests={"test.m.sums": "fail", "test.m.late": "warn", "test.m.fine": "pass"},
        models={
            "model.m.totals.v2": rebuilt,
            "model.m.run_log": replace(rebuilt, reason="FILLED_BY_HOOKS", rows_changed=0),
        },
        started_at=NOON + PANE,
        finished_at=NOON + PANE + timedelta(seconds=2.5),
        delivered_at=NOON,
    )
    log.append(refused)

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON + 3 * PANE)

    assert (status.held_by, status.warned_by) == (("test.m.sums",), ("test.m.late",))
    # Age of what readers see, not of what is held back.
    assert (status.staleness_s, status.is_stale) == (900.0, True)
    assert [row.lag_s for row in status.snapshots] == [None, None]
    assert [row.status for row in status.snapshots] == ["held", "published"]
    text = render_status(status)
    assert text.startswith(
        "published 15m ago, stale\nheld by test.m.sums\n"
        f"{how_to_show_rows('test.m.sums')}\n{RELEASE}\nwarned by test.m.late\n"
    )
    assert "2.5 s" in text
    assert "7 (rebuilt totals.v2: NEW_MODEL) (filled by hooks: run_log)" in text

    # Its records waited for the next one that readers see.
    shown = replace(
        _snapshot(3, "refresh", NOON + 2 * PANE), delivered_at=NOON + timedelta(minutes=9)
    )
    log.append(shown)

    lags = [row.lag_s for row in read_status(tmp_path, every=PANE, pane=PANE, now=NOON).snapshots]
    assert lags == [(shown.finished_at - NOON).total_seconds(), None, None]


def test_a_pass_without_news_keeps_what_is_published_from_being_stale(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    log.append(_snapshot(1, "build", NOON))
    later = NOON + 3 * PANE
    assert read_status(tmp_path, every=PANE, pane=PANE, now=later).is_stale
    _finish_pass(tmp_path, 9, NOON + PANE)
    _finish_pass(tmp_path, 10, later - timedelta(seconds=20))

    status = read_status(tmp_path, every=PANE, pane=PANE, now=later)

    assert (status.staleness_s, status.checked_s, status.is_stale) == (900.0, 20.0, False)
    assert render_status(status).startswith("published 15m ago, nothing new 20s ago\n")
    much_later = later + 3 * PANE
    stopped = read_status(tmp_path, every=PANE, pane=PANE, now=much_later)
    assert (stopped.checked_s, stopped.is_stale) == (920.0, True)


def test_a_pass_that_held_its_snapshot_back_does_not_count(tmp_path: Path) -> None:
    log = SnapshotLog(tmp_path)
    log.append(_snapshot(1, "build", NOON))
    log.append(replace(_snapshot(2, "refresh", NOON + PANE), status="held"))
    later = NOON + 3 * PANE
    _finish_pass(tmp_path, 10, later)

    status = read_status(tmp_path, every=PANE, pane=PANE, now=later)

    assert (status.checked_s, status.is_stale) == (900.0, True)


def _finish_pass(warehouse: Path, batch_id: int, at: datetime) -> None:
    """Leave the mark that Spark leaves at the end of a micro-batch."""
    commits = StateFolder(warehouse).checkpoint / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(batch_id)).write_text("v1\n{}")
    os.utime(commits / str(batch_id), (at.timestamp(), at.timestamp()))


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


def test_a_held_snapshot_keeps_the_number_of_rows_that_fail(tmp_path: Path) -> None:
    held = replace(_snapshot(1, "build", None), status="held", tests={"test.shop.no_gap": "fail"})
    SnapshotLog(tmp_path).append(held)
    tests = {"test.shop.no_gap": TestStanding("fail", 1_207, "tests/no_gap.sql:1")}
    run = LastRun("build", 7, NOON, NOON, NOON, "incomplete", newest=NewestBatch(1, True, 2, tests))
    keep_last_run(tmp_path, run)

    status = read_status(tmp_path, every=PANE, pane=PANE, now=NOON)

    assert "held by test.shop.no_gap: 1,207 rows (tests/no_gap.sql:1)\n" in render_status(status)
    content = json.loads(json.dumps(asdict(status), default=str))
    assert content["last_run"]["newest"]["tests"]["test.shop.no_gap"]["rows"] == 1_207

    # The note is of another snapshot, so the unknown number is left out.
    keep_last_run(tmp_path, replace(run, newest=NewestBatch(9, True, 2, tests)))
    later = render_status(read_status(tmp_path, every=PANE, pane=PANE, now=NOON))
    assert "held by test.shop.no_gap\n" in later


def test_a_refused_edit_and_what_releases_a_held_snapshot_are_told(tmp_path: Path) -> None:
    held = replace(_snapshot(1, "build", None), status="held", tests={"test.shop.no_gap": "fail"})
    SnapshotLog(tmp_path).append(held)
    note_refusal(tmp_path, ProjectRefusal("2026-01-01T12:00:00Z", ("models/a.sql",), "DBT_FAILED"))

    text = render_status(read_status(tmp_path, every=PANE, pane=PANE))

    show = how_to_show_rows("test.shop.no_gap")
    assert f"held by test.shop.no_gap\n{show}\n  readers stay on the snapshot before" in text
    assert (
        "edit of 2026-01-01T12:00:00Z refused, the previous project keeps running: DBT_FAILED"
        in text
    )
