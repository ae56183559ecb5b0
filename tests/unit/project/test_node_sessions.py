from __future__ import annotations

from livemart.project.dbt_hooks import NO_HOOKS, Hooks
from livemart.project.graph import DataTest, Project
from livemart.project.node_sessions import sessions_in_a_build, with_sessions
from livemart.project.session_spec import PLAIN
from tests.models import make_model

ZONE = "spark.sql.session.timeZone"
NET = "create temporary function net(x int) returns int return x"


def _project(**parents: tuple[str, ...]) -> Project:
    """A chain of models, each with one test."""
    models = {
        f"model.m.{name}": make_model(
            f"model.m.{name}", depends_on=tuple(f"model.m.{parent}" for parent in above)
        )
        for name, above in parents.items()
    }
    tests = {
        f"test.m.{name}": DataTest(
            f"test.m.{name}", name, None, None, {}, "error", "", (f"model.m.{name}",), None, ""
        )
        for name in parents
    }
    return Project("m", ".", "m", {}, models, tests, {})


def test_what_is_set_up_above_a_model_holds_for_it_and_for_no_other() -> None:
    hooks = Hooks(
        on_run_start=("set a.b=1", "grant select on t to x"),
        before={"model.m.a": ("set time zone 'Asia/Tokyo'", "insert into t select 1")},
        after={"model.m.a": ("reset a.b", "optimize t")},
    )

    project = with_sessions(_project(a=(), b=("a",), c=(), d=("b", "c")), {}, hooks)

    statements = {key[-1]: model.session.statements for key, model in project.models.items()}
    assert statements["a"] == ("set a.b=1", "set time zone 'Asia/Tokyo'")
    assert statements["b"] == statements["d"] == (*statements["a"], "reset a.b")
    assert statements["c"] == project.session.statements == ("set a.b=1",)
    assert project.models["model.m.a"].session_before == project.session
    assert project.tests["test.m.a"].session == project.models["model.m.b"].session
    assert project.acting_hooks == ("grant select on t to x",)
    assert project.models["model.m.a"].acting_hooks == ("insert into t select 1", "optimize t")


def test_what_every_model_sets_is_one_session() -> None:
    sets = ("set a.b=1",)
    hooks = Hooks(before={f"model.m.{name}": sets for name in "abc"})

    project = with_sessions(_project(a=(), b=("a",), c=("b",)), {ZONE: "Asia/Tokyo"}, hooks)

    assert {model.session.text for model in project.models.values()} == {
        f"{ZONE} = Asia/Tokyo; set a.b=1"
    }


def test_dbt_runs_what_cannot_be_run_twice_in_a_session_of_its_own() -> None:
    hooks = Hooks(before={"model.m.a": (NET,), "model.m.c": ("set a.b=1",)})
    project = with_sessions(_project(a=(), b=("a",), c=()), {}, hooks)

    specs, alone = sessions_in_a_build(project)

    assert alone == {"model.m.a"}
    assert specs["model.m.a"] == PLAIN
    assert specs["model.m.b"].statements == (NET,)
    assert specs["model.m.c"].statements == ("set a.b=1",)


def test_a_project_without_any_has_the_engines_session() -> None:
    project = with_sessions(_project(a=()), {"spark.sql.ansi.enabled": "false"}, NO_HOOKS)

    assert project.session == project.models["model.m.a"].session == PLAIN
