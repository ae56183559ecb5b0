"""Which nodes say something of the run, and what their SQL is in others."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.project.dbt import Dbt
from livemart.project.run_values import CANONICAL, OTHER, RunValues

_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"
MOMENT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


# 3 s: a project is parsed again.
def test_a_model_that_says_something_of_the_run_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "jaffle"
    shutil.copytree(_JAFFLE, folder, ignore=shutil.ignore_patterns("target"))
    marts = folder / "models" / "marts"
    (folder / "macros" / "stamp.sql").write_text(
        "{% macro stamp() %}'{{ invocation_id }}'{% endmacro %}"
    )
    (marts / "stamped.sql").write_text("select {{ stamp() }} as run, '{{ flags.WHICH }}' as which")
    command = "{{ invocation_args_dict.which }} {{ invocation_args_dict.invocation_command }}"
    (marts / "commanded.sql").write_text(f"select '{command} {{{{ flags.INVOCATION_COMMAND }}}}'")
    (marts / "daily.sql").write_text("select '{{ modules.datetime.date.today() }}' as day")
    config = folder / "dbt_project.yml"
    config.write_text(
        f"{config.read_text()}on-run-start: [\"insert into t '{{{{ invocation_id }}}}'\"]\n"
    )
    dbt = Dbt(folder, session=lambda: pytest.fail("nothing asks"))
    dbt.run = RunValues("id", MOMENT)

    project = dbt.load()

    assert dbt.run_dependent == {"model.jaffle.stamped", "model.jaffle.daily"}
    stamped = project.models["model.jaffle.stamped"]
    assert stamped.compiled_code == "select 'id' as run, 'build' as which"
    assert stamped.in_other_runs == tuple(
        f"select '{run.invocation_id}' as run, 'build' as which" for run in (CANONICAL, OTHER)
    )
    assert project.models["model.jaffle.daily"].compiled_code == "select '2026-03-01' as day"
    assert project.models["model.jaffle.orders"].in_other_runs == ()
    commanded = project.models["model.jaffle.commanded"].compiled_code
    assert commanded == "select 'build dbt build dbt build'"

    dbt.run = RunValues("next", MOMENT + timedelta(days=1))
    again = dbt.compile_for_run()

    assert again.models["model.jaffle.daily"].compiled_code == "select '2026-03-02' as day"
    assert "select 'next' as run" in str(again.models["model.jaffle.stamped"].compiled_code)
    # Hooks are those of when the project was read.
    assert again.acting_hooks == project.acting_hooks != ()
