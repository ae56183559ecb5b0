"""What SQL is told of the run that compiles it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from livemart.project.dbt import Dbt
from livemart.project.run_values import CANONICAL, OTHER, RunValues, run_of

_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"
MOMENT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def test_a_run_has_one_clock() -> None:
    context: dict[str, Any] = {
        "flags": SimpleNamespace(WHICH="compile"),
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


def test_a_batch_has_one_run_and_two_have_two() -> None:
    assert run_of("e", 1, MOMENT) == run_of("e", 1, MOMENT)
    assert run_of("e", 1, MOMENT).invocation_id != run_of("e", 2, MOMENT).invocation_id


def test_two_runs_differ_in_all_that_is_said_of_a_moment() -> None:
    moments = CANONICAL.started_at, OTHER.started_at
    for part in ("%Y", "%m", "%d", "%A", "%H", "%I", "%M", "%S", "%f", "%j", "%U"):
        assert len({moment.strftime(part) for moment in moments}) == 2, part


# 3 s: a project is parsed anew.
def test_a_model_that_says_something_of_the_run_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "jaffle"
    shutil.copytree(_JAFFLE, folder, ignore=shutil.ignore_patterns("target"))
    marts = folder / "models" / "marts"
    (folder / "macros" / "stamp.sql").write_text(
        "{% macro stamp() %}'{{ invocation_id }}'{% endmacro %}"
    )
    (marts / "stamped.sql").write_text("select {{ stamp() }} as run, '{{ flags.WHICH }}' as which")
    (marts / "daily.sql").write_text("select '{{ modules.datetime.date.today() }}' as day")
    dbt = Dbt(folder)
    dbt.run = RunValues("id", MOMENT)

    project = dbt.load()

    assert dbt.of_the_run == {"model.jaffle.stamped", "model.jaffle.daily"}
    stamped = project.models["model.jaffle.stamped"]
    assert stamped.compiled_code == "select 'id' as run, 'build' as which"
    assert stamped.in_other_runs == tuple(
        f"select '{run.invocation_id}' as run, 'build' as which" for run in (CANONICAL, OTHER)
    )
    assert project.models["model.jaffle.daily"].compiled_code == "select '2026-03-01' as day"
    assert project.models["model.jaffle.orders"].in_other_runs == ()
