from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from livemart.inspect.run_lines import describe_run
from livemart.state.last_run import BuildProgress, LastRun, MemoryUse, RunFailure

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN = LastRun("refresh", 7, NOON, NOON, ended_at=NOON, ending="ok")
FAILURE = RunFailure(NOON, "MODEL_FAILED", ("model.shop.totals",), "models/totals.sql:3: no")
LATER = NOON + timedelta(minutes=31)


def test_a_failed_run_says_when_which_model_and_which_code() -> None:
    lines = describe_run(replace(RUN, ending="failed", failure=FAILURE), LATER)

    assert lines == [
        "last run: refresh failed 31m ago",
        "  why: MODEL_FAILED in model.shop.totals at 2026-03-01 12:00:00: models/totals.sql:3: no",
        "  next: correct it, then run `refresh` again",
    ]


def test_a_killed_run_is_told_from_its_last_note_on() -> None:
    killed = replace(
        RUN, ending="killed", ended_at=None, failure=RunFailure(NOON, "KILLED", (), "gone")
    )

    assert describe_run(killed, LATER)[:2] == [
        "last run: refresh was killed 31m ago",
        "  why: KILLED at 2026-03-01 12:00:00: gone",
    ]


def test_a_run_that_goes_on_says_how_far_it_is_and_what_failed_before() -> None:
    running = replace(RUN, ended_at=None, ending=None, progress=BuildProgress(3, 5))

    assert describe_run(running, LATER) == [
        "a run goes on: refresh, begun 31m ago, 3 of 5 models built"
    ]
    assert describe_run(replace(running, failure=FAILURE), LATER)[1].startswith(
        "last failure: MODEL_FAILED in model.shop.totals at"
    )


def test_the_memory_that_a_run_held_is_said() -> None:
    run = replace(RUN, memory=MemoryUse(612_400_000, 1_940_000_000))

    assert describe_run(run, LATER)[1] == (
        "  memory after its newest micro-batch: Python 612 MB, Java 1,940 MB"
    )
    small = replace(RUN, memory=MemoryUse(90_000_000, 0))
    assert describe_run(small, LATER)[1] == "  memory after its newest micro-batch: Python 90 MB"


def test_a_run_that_ended_well_takes_one_line() -> None:
    assert describe_run(RUN, LATER) == ["last run: refresh ended well 31m ago"]
    assert describe_run(None, LATER) == []
