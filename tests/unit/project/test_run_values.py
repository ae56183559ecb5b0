"""The values of a run that SQL sees while it is compiled."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from livemart.project.run_values import CANONICAL, OTHER, RunValues, run_of

MOMENT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def test_a_run_has_one_clock() -> None:
    context: dict[str, Any] = {
        "flags": SimpleNamespace(WHICH="compile"),
        "invocation_args_dict": {"which": "compile", "empty": False},
        "modules": {"datetime": {"datetime": datetime, "timedelta": 1}, "re": 2},
    }

    RunValues("id", MOMENT).put_into(context)

    clock = context["modules"]["datetime"]
    assert clock["datetime"].now() == datetime(2026, 3, 1, 12, 30)
    assert clock["datetime"].now(UTC) == MOMENT
    assert str(clock["date"].today()) == "2026-03-01"
    assert clock["datetime"](2020, 1, 1) == datetime(2020, 1, 1)
    assert (clock["timedelta"], context["modules"]["re"]) == (1, 2)
    assert (context["run_started_at"], context["invocation_id"]) == (MOMENT, "id")
    assert context["flags"].WHICH == "build"
    assert context["flags"].INVOCATION_COMMAND == "dbt build"
    arguments = {"which": "build", "empty": False, "invocation_command": "dbt build"}
    assert context["invocation_args_dict"] == arguments
    assert context["thread_id"] == "Thread-1 (worker)"


def test_a_hook_sees_the_run_and_a_clock_that_goes_on() -> None:
    context: dict[str, Any] = {"modules": {"datetime": {"datetime": datetime}}}

    RunValues("id", MOMENT).name_in(context)

    assert (context["run_started_at"], context["invocation_id"]) == (MOMENT, "id")
    assert context["modules"]["datetime"]["datetime"] is datetime


def test_a_batch_has_one_run_and_two_have_two() -> None:
    assert run_of("e", 1, MOMENT) == run_of("e", 1, MOMENT)
    assert run_of("e", 1, MOMENT).invocation_id != run_of("e", 2, MOMENT).invocation_id


def test_two_runs_differ_in_all_that_is_said_of_a_moment() -> None:
    moments = CANONICAL.started_at, OTHER.started_at
    for part in ("%Y", "%m", "%d", "%A", "%H", "%I", "%M", "%S", "%f", "%j", "%U"):
        assert len({moment.strftime(part) for moment in moments}) == 2, part
