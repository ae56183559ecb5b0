"""How the newest run goes is kept, also of a run that could not say how it ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from livemart.state.last_run import (
    KILLED,
    BuildProgress,
    LastRun,
    NewestBatch,
    RunFailure,
    RunTotals,
    TestStanding,
    keep_last_run,
    read_last_run,
    run_from_json,
    run_to_json,
)
from livemart.state.lock import hold_warehouse
from livemart.state.places import StateFolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILURE = RunFailure(NOON, "MODEL_FAILED", ("model.shop.totals",), "models/totals.sql:3: no")
# No process has this id: Linux gives at most 2^22.
NOBODY = 2**22 + 1


def running(pid: int) -> LastRun:
    return LastRun("build", pid, NOON, NOON + timedelta(seconds=9), progress=BuildProgress(3, 5))


def test_a_run_that_never_ended_and_holds_nothing_was_killed(tmp_path: Path) -> None:
    keep_last_run(tmp_path, running(NOBODY))

    run = read_last_run(tmp_path)

    assert run is not None
    assert (run.ending, run.ended_at, run.progress) == ("killed", None, None)
    assert run.failure is not None
    assert (run.failure.code, run.failure.at) == (KILLED, NOON + timedelta(seconds=9))


def test_a_run_goes_on_while_its_process_holds_the_warehouse(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path) as lock:
        keep_last_run(tmp_path, running(lock.holder.pid))
        assert read_last_run(tmp_path) == running(lock.holder.pid)

        # Another process that holds it says nothing of this run.
        keep_last_run(tmp_path, running(NOBODY))
        other = read_last_run(tmp_path)

    assert other is not None
    assert other.ending == "killed"


def test_what_has_ended_stays_as_it_was_noted(tmp_path: Path) -> None:
    ended = replace(running(NOBODY), ending="failed", ended_at=NOON, failure=FAILURE)

    keep_last_run(tmp_path, ended)

    assert read_last_run(tmp_path) == ended


def test_no_record_and_one_of_another_version_say_nothing(tmp_path: Path) -> None:
    assert read_last_run(tmp_path) is None

    path = StateFolder(tmp_path).last_run
    path.parent.mkdir()
    path.write_text('{"command": "build"}', encoding="utf-8")

    assert read_last_run(tmp_path) is None
    assert run_from_json({"command": "build"}) is None


def test_a_run_is_the_same_after_a_way_through_json() -> None:
    tests = {"test.shop.unique_totals.1a": TestStanding("fail", 7)}
    run = replace(
        running(4711),
        failure=FAILURE,
        totals=RunTotals(2, 3.5, 1, {"bronze.orders": 40}, {"bronze.orders": 2}),
        newest=NewestBatch(9, True, 1.5, tests, {"bronze.orders": 1}),
    )

    assert run_from_json(run_to_json(run)) == run
