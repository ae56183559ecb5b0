from __future__ import annotations

from dataclasses import replace

from livemart.project.graph import DataTest, Project
from livemart.project.hooks.dbt_hooks import NO_HOOKS, NOT_RENDERED, Hooks
from livemart.project.node_sessions import with_sessions
from livemart.project.session_spec import PLAIN, SessionSpec
from tests.models import make_model

ZONE, POLICY = "spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy"
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
        on_run_start=(f"set {POLICY}=LAST_WIN", "grant select on t to x"),
        before={"model.m.a": ("set time zone 'Asia/Tokyo'", "insert into t select 1")},
        after={"model.m.a": (f"reset {POLICY}", "optimize t")},
    )

    project = with_sessions(_project(a=(), b=("a",), c=(), d=("b", "c")), {}, hooks)

    statements = {key[-1]: model.session.statements for key, model in project.models.items()}
    assert statements["a"] == (f"set {POLICY}=LAST_WIN", "set time zone 'Asia/Tokyo'")
    assert statements["b"] == statements["d"] == (*statements["a"], f"reset {POLICY}")
    assert statements["c"] == project.session.statements == (f"set {POLICY}=LAST_WIN",)
    assert project.models["model.m.a"].session_in_dbt == project.session
    assert project.tests["test.m.a"].session == project.models["model.m.b"].session
    assert project.acting_hooks == ("grant select on t to x",)
    assert project.models["model.m.a"].acting_hooks == ("insert into t select 1", "optimize t")


def test_what_every_model_sets_is_one_session() -> None:
    sets = (f"set {POLICY}=LAST_WIN",)
    hooks = Hooks(before={f"model.m.{name}": sets for name in "abc"})

    project = with_sessions(_project(a=(), b=("a",), c=("b",)), {ZONE: "Asia/Tokyo"}, hooks)

    assert {model.session.text for model in project.models.values()} == {
        f"{ZONE} = Asia/Tokyo; set {POLICY}=LAST_WIN"
    }


def _in_dbt(project: Project) -> tuple[dict[str, SessionSpec], set[str]]:
    specs = {key: model.session_in_dbt for key, model in project.models.items()}
    return specs, {key for key, model in project.models.items() if model.is_alone_in_dbt}


def test_dbt_runs_what_it_creates_and_what_it_leaves_behind_in_a_session_of_its_own() -> None:
    zone = "set time zone 'Asia/Tokyo'"
    hooks = Hooks(
        before={"model.m.a": (NET,), "model.m.c": (zone,), "model.m.d": (zone,)},
        after={"model.m.d": ("set time zone 'UTC'",)},
    )
    project = _project(a=(), b=("a",), c=(), d=())
    models = {
        key: replace(model, compiled_code="select net(1)") for key, model in project.models.items()
    }
    project = with_sessions(replace(project, models=models), {}, hooks)

    specs, alone = _in_dbt(project)

    assert alone == {"model.m.a", "model.m.d"}
    assert specs["model.m.a"] == specs["model.m.d"] == PLAIN
    assert specs["model.m.b"].statements == (NET,)
    assert specs["model.m.c"].statements == (zone,)
    # Its SQL does not name the function.
    assert project.tests["test.m.a"].session == PLAIN


def test_in_a_build_hooks_have_what_they_name_and_nothing_else_has_to_be_made_again() -> None:
    view = "create temporary view v as select * from m.dropped_later"
    hooks = Hooks(
        on_run_start=(NET,),
        before={"model.m.a": ("create table m.dropped_later as select 1", view)},
        after={"model.m.b": ("insert into log select net(1)",), "model.m.d": ("drop table m.log",)},
    )
    project = with_sessions(_project(a=(), b=("a",), c=("a",), d=("a",)), {}, hooks)

    specs, alone = _in_dbt(project)

    assert alone == {"model.m.a"}
    assert set(specs.values()) == {project.session} == {SessionSpec(statements=(NET,))}
    assert {model.session for model in project.models.values()} == {PLAIN}
    unknown = replace(hooks, after={"model.m.b": (f"{NOT_RENDERED} {{{{ audit() }}}}",)})
    project = with_sessions(_project(a=(), b=("a",)), {}, unknown)
    assert project.models["model.m.b"].session_in_dbt.statements == (NET, view)


def test_a_project_without_any_has_the_engines_session() -> None:
    project = with_sessions(_project(a=()), {"spark.sql.ansi.enabled": "false"}, NO_HOOKS)

    assert project.session == project.models["model.m.a"].session == PLAIN


def test_what_groups_by_maps_with_numbers_is_interpreted_in_builds_and_refreshes() -> None:
    """Spark 4.2.0: generated code takes NULL in a map that is a key for 0 or another value."""
    project = _project(a=(), b=("a",), c=("b",), d=("a",))
    texts = {
        "a": "select id, map('x', n) as m, n from t",
        "b": "select m, n from a",
        "c": "select m, count(*) as k from b group by m",
        "d": "select n, count(*) as k from a group by n",
    }
    models = {
        key: replace(
            model,
            compiled_code=texts[key[-1]],
            materialized="view" if key[-1] == "b" else "table",
        )
        for key, model in project.models.items()
    }
    unique = "select m as unique_field, count(*) from a group by m having count(*) > 1"
    tests = {key: replace(test, compiled_code=unique) for key, test in project.tests.items()}

    project = with_sessions(replace(project, models=models, tests=tests), {}, Hooks())

    interpreted = SessionSpec().interpreted()
    assert {key[-1]: it.session for key, it in project.models.items()} == {
        "a": PLAIN,
        "b": PLAIN,
        "c": interpreted,
        "d": PLAIN,
    }
    assert project.models["model.m.c"].session_in_dbt == interpreted
    assert {it.session for it in project.tests.values()} == {interpreted}
    assert interpreted.unknown_effect() is None
