"""The command line: light help, one error shape, exit codes."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from livemart.cli import commands
from livemart.cli.commands import cli
from livemart.errors import RefreshError
from livemart.inspect.comparison import Differences
from livemart.inspect.verify import Comparison
from livemart.plan.plan import Full, Plan
from livemart.project.graph import Project
from livemart.run.events import ReportEvent, StepBegan
from livemart.settings import Settings
from livemart.state.lock import hold_warehouse
from tests.models import make_model

COMMANDS = (
    "build",
    "corrections",
    "dead-letters",
    "diff",
    "doctor",
    "env",
    "history",
    "keep",
    "maintain",
    "plan",
    "refresh",
    "serve",
    "status",
    "stream",
    "tables",
    "token",
    "unlock",
    "up",
    "verify",
)
TOKEN_COMMANDS = ("create", "list", "revoke")
CALLS = [
    *([name] for name in COMMANDS if name not in ("dead-letters", "token")),
    ["dead-letters", "show"],
    *(["token", name] for name in TOKEN_COMMANDS),
]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project_here(tmp_path: Path) -> None:
    """The working folder is that of a project."""
    (tmp_path / "dbt_project.yml").touch()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LIVEMART_")]:
        monkeypatch.delenv(name)


def test_a_process_that_ends_looks_for_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*, prog_name: str) -> None:
        sys.exit(3)

    monkeypatch.setattr(commands, "cli", ends)
    try:
        with pytest.raises(SystemExit, match="3"):
            commands.main()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_all_commands_are_there() -> None:
    assert sorted(cli.commands) == sorted((*COMMANDS, "completion", "ingest", "init"))


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_command_takes_the_four_places(call: list[str]) -> None:
    answer = CliRunner().invoke(cli, [*call, "--help"])

    assert answer.exit_code == 0
    for flag in ("--project-dir", "--profiles-dir", "--warehouse", "--landing", "--debug"):
        assert flag in answer.output


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from livemart.cli.commands import cli;"
        "[CliRunner().invoke(cli, [name, '--help']) for name in cli.commands];"
        "CliRunner().invoke(cli, ['token', 'create', '--help']);"
        "heavy = {'pyspark', 'dbt', 'deltalake', 'pyarrow', 'sqlglot', 'sqlalchemy', 'fastapi'};"
        "heavy &= set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )

    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (answer.returncode, answer.stderr) == (0, "")


def test_an_error_is_code_message_and_next_step_with_exit_code_two() -> None:
    answer = CliRunner().invoke(cli, ["plan", "--project-dir", "nowhere"])

    assert answer.exit_code == 2
    assert answer.stderr.startswith("DBT_PROJECT_NOT_FOUND: ")
    assert "\n  next: " in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_traceback_comes_with_debug_only() -> None:
    answer = CliRunner().invoke(cli, ["plan", "--project-dir", "nowhere", "--debug"])

    assert answer.exit_code == 2
    assert "Traceback" in answer.stderr


def test_a_plan_that_no_build_would_accept_is_shown_and_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from livemart.plan.plan import Full, Plan
    from livemart.plan.reasons import Reason
    from livemart.plan.stored_queries import stored_queries
    from livemart.run import runtime
    from tests.unit.plan.test_project_plans import policy_project

    full = Plan(Full((Reason("GLOBAL_AGG", "count(*) over all rows", 3),)))
    project, models = policy_project("incremental"), {"model.shop.totals": full}
    plans = SimpleNamespace(models=models, stored=stored_queries(project, models))
    found = (project, plans, None)
    monkeypatch.setattr(runtime, "load_plans", lambda settings, say: found)

    answer = CliRunner().invoke(cli, ["plan"])

    assert answer.exit_code == 1
    assert "totals  full" in answer.stdout
    assert "POLICY_NOT_MET: models/totals.sql:3: refresh: incremental" in answer.stderr


def test_a_failed_refresh_is_told_by_status_with_model_code_and_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from livemart.run import runtime

    @contextmanager
    def open_runtime(settings: Settings, report: ReportEvent, **_: object) -> Iterator[object]:
        with hold_warehouse(settings.warehouse):
            report(StepBegan("starting Spark"))
            project = SimpleNamespace(models={})
            yield SimpleNamespace(settings=settings, project=project)

    def fail(pipeline: object) -> object:
        hint = "mend the model"
        raise RefreshError("MODEL_FAILED", "models/totals.sql: no", hint=hint, models=["model.m.t"])

    monkeypatch.setattr(runtime, "open_runtime", open_runtime)
    monkeypatch.setattr("livemart.run.pipeline.Pipeline.refresh", fail)
    monkeypatch.setattr("livemart.run.pipeline.Pipeline.__post_init__", lambda pipeline: None)
    before = datetime.now(UTC)

    failed = CliRunner().invoke(cli, ["refresh"])
    text = CliRunner().invoke(cli, ["status"])
    values = json.loads(CliRunner().invoke(cli, ["status", "--output", "json"]).stdout)["last_run"]

    assert failed.exit_code == 1
    assert 'info step_began step="starting Spark"' in failed.stderr
    assert "last run: refresh failed 0s ago" in text.stdout
    assert "why: MODEL_FAILED in model.m.t at 20" in text.stdout
    assert (values["command"], values["ending"]) == ("refresh", "failed")
    assert (values["failure"]["code"], values["failure"]["models"]) == (
        "MODEL_FAILED",
        ["model.m.t"],
    )
    assert before <= datetime.fromisoformat(values["failure"]["at"]) <= datetime.now(UTC)


def test_wrong_settings_are_all_reported() -> None:
    answer = CliRunner().invoke(cli, ["stream", "--every", "soon", "--clock", "wal"])

    assert answer.exit_code == 2
    assert answer.stderr.count("WRONG_SETTING") == 2


def test_an_unknown_flag_is_a_wrong_use() -> None:
    answer = CliRunner().invoke(cli, ["status", "--warehose", "x"])

    assert answer.exit_code == 2
    assert "--warehouse" in answer.stderr


@pytest.mark.usefixtures("project_here")
def test_a_reason_that_no_dead_letter_can_have_is_a_wrong_use() -> None:
    wrong = CliRunner().invoke(cli, ["dead-letters", "show", "--reason", "to-late"])
    right = CliRunner().invoke(cli, ["dead-letters", "show", "--reason", "too-late"])

    assert (wrong.exit_code, right.exit_code) == (2, 0)
    assert "found to-late, did you mean TOO_LATE?" in wrong.output


@pytest.mark.usefixtures("project_here")
def test_status_writes_the_console_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "console.html"

    answer = CliRunner().invoke(cli, ["status", "--html", str(file)])

    assert (answer.exit_code, "no snapshot yet" in answer.stdout) == (0, True)
    assert "No snapshot log is at" in file.read_text(encoding="utf-8")
    unwritable = CliRunner().invoke(cli, ["status", "--html", str(tmp_path)])
    assert (unwritable.exit_code, "Is a directory" in unwritable.output) == (1, True)


@pytest.mark.usefixtures("project_here")
def test_status_of_an_empty_warehouse_says_what_to_do() -> None:
    text = CliRunner().invoke(cli, ["status"])
    found = CliRunner().invoke(cli, ["status", "--output", "json"])

    assert (text.exit_code, found.exit_code) == (0, 0)
    assert "next: run `build`" in text.output
    assert json.loads(found.stdout)["snapshots"] == []


@pytest.mark.usefixtures("project_here")
def test_an_unexpected_error_is_told_in_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr("livemart.inspect.status.read_status", break_down)

    answer = CliRunner().invoke(cli, ["status"])

    assert answer.exit_code == 1
    assert answer.stderr.startswith("UNEXPECTED: RuntimeError: out of luck\n  next: ")


_SAME = Comparison("a", True, 1, differences=Differences((), 0, (), {}))


@pytest.mark.usefixtures("project_here")
@pytest.mark.parametrize(
    ("comparisons", "exit_code", "is_equal"),
    [
        ([_SAME, Comparison("seed", True, 1, "an input")], 0, [True, None]),
        ([_SAME, Comparison("b", False, note="cannot be recomputed")], 3, [True, None]),
        (
            [
                Comparison("b", False, note="cannot be recomputed"),
                Comparison("c", False, 1, differences=Differences(("n",), 0, (), {})),
            ],
            1,
            [None, False],
        ),
    ],
)
def test_verify_tells_equal_different_and_not_compared_apart(
    monkeypatch: pytest.MonkeyPatch,
    comparisons: list[Comparison],
    exit_code: int,
    is_equal: list[bool | None],
) -> None:
    monkeypatch.setattr("livemart.inspect.verify.verify_snapshot", lambda *_: iter(comparisons))

    as_json = CliRunner().invoke(cli, ["verify", "--output", "json"])

    assert CliRunner().invoke(cli, ["verify"]).exit_code == as_json.exit_code == exit_code
    told = json.loads(as_json.stdout)["models"]
    assert [model["is_equal"] for model in told] == is_equal
    assert [model["differences"] is None for model in told] == [it is None for it in is_equal]


@pytest.mark.usefixtures("project_here")
def test_verify_of_an_empty_warehouse_says_what_to_do() -> None:
    answer = CliRunner().invoke(cli, ["verify"])

    assert answer.exit_code == 2
    assert answer.stderr.startswith("NOTHING_PUBLISHED: ")


@pytest.mark.parametrize("command", ["build", "refresh", "stream", "up", "plan"])
def test_a_folder_without_a_project_is_left_as_it_is(command: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli, [command])

    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"DBT_PROJECT_NOT_FOUND: {tmp_path}: no dbt_project.yml")
    assert list(tmp_path.iterdir()) == []


def _calls(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield a call of each command, with the words that it cannot do without."""
    words = {
        "create": ("--name", "me", "--admin"),
        "diff": ("1", "2"),
        "dismiss": ("--reason", "TYPE_MISMATCH"),
        "ingest": ("orders",),
        "init": ("--from-dbt",),
        "keep": ("1",),
        "revoke": ("t1",),
    }
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _calls(command, (*above, name))
        elif name != "completion":
            yield (*above, name, *words.get(name, ()))


@pytest.mark.parametrize("call", [*_calls(cli)], ids=" ".join)
def test_each_command_says_that_a_folder_holds_no_project(
    call: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    answer = CliRunner().invoke(cli, call)

    # `doctor` checks a machine, before there is any project on it.
    is_doctor = call == ("doctor",)
    assert answer.exit_code == (0 if is_doctor else 2)
    shown = answer.stdout if is_doctor else answer.stderr
    assert f"{tmp_path}" in shown
    assert "no dbt_project.yml" in shown and "holds no project" in shown
    for way in ("livemart init FOLDER", "livemart init --from-dbt FOLDER", "--project-dir"):
        assert way in shown
    assert "run `build`" not in answer.output
    assert list(tmp_path.iterdir()) == []


def test_several_names_behind_one_flag_are_refused_with_the_way_to_write_them() -> None:
    done = CliRunner().invoke(cli, ["plan", "--select", "a", "b"])

    assert done.exit_code == 2
    assert "unexpected extra argument (b); write several names as one word, --select 'a b'" in (
        done.stderr
    )


def test_plan_against_exits_with_1_if_an_edit_turned_a_model_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_model("model.m.a")
    project = Project("m", ".", "m", {}, {node.unique_id: node}, {}, {})
    planned = SimpleNamespace(models={node.unique_id: Plan(Full(()))}, stored={})
    monkeypatch.setattr("livemart.run.runtime.load_plans", lambda *_: (project, planned, None))
    monkeypatch.setattr("livemart.plan.undeclared_columns.require_declared", lambda _: None)
    (tmp_path / "plans.json").write_text(
        '{"models": [{"name": "a", "file": "models/a.sql", "strategy": "signed", "policy": "auto",'
        ' "reasons": []}]}'
    )

    result = CliRunner().invoke(cli, ["plan", "--against", "plans.json"])

    assert result.exit_code == 1
    assert "a  signed -> full" in result.output
    assert "turned full since plans.json: a" in result.output
