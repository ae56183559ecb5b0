"""`plan` shows strategy, keys, margins, and reasons with line and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from livemart.inspect.plan_report import describe_plans, full_models, render_plans
from livemart.plan.plan import Full, Plan, View
from livemart.plan.project_plans import ProjectPlans, broken_policies
from livemart.plan.reasons import Reason
from livemart.plan.stored_queries import stored_queries
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.signed import Signed
from livemart.project.graph import Column, Model, Policy, Project
from livemart.project.questions import Question
from livemart.project.session_spec import profile_spec
from tests.models import make_model


def model(name: str, policy: Policy = "auto") -> Model:
    return make_model(f"model.m.{name}", policy=policy)


def described(
    project: Project, plans: Mapping[str, Plan], selected: frozenset[str] | None = None
) -> dict[str, Any]:
    return describe_plans(project, plans, stored_queries(project, plans), selected)


def project(*models: Model) -> Project:
    return Project("m", ".", "m", {}, {node.unique_id: node for node in models}, {}, {})


REASON = Reason("GLOBAL_AGG", "one row over all", 7, "put an hourly model below it")
REGION = Region(("shop_id",), "sold_at", 3_600_000_000, 0, (), {}, {})


def test_a_report_names_strategy_and_reasons_as_scripts_rely_on() -> None:
    report = described(project(model("a")), {"model.m.a": Plan(Full((REASON,)))})

    (of_model,) = report["models"]
    assert (of_model["name"], of_model["strategy"]) == ("a", "full")
    assert of_model["reasons"] == [
        {
            "code": "GLOBAL_AGG",
            "message": "one row over all",
            "line": 7,
            "suggestion": "put an hourly model below it",
            "place": "models/a.sql:7",
        }
    ]


def test_versions_of_a_model_are_told_apart() -> None:
    versions = [
        replace(model("totals"), unique_id=f"model.m.totals.v{number}", name="totals")
        for number in (1, 2)
    ]
    report = described(project(*versions), {it.unique_id: Plan(View()) for it in versions})

    assert render_plans(report).split() == ["totals.v1", "view", "totals.v2", "view"]


def test_models_of_two_packages_are_told_apart() -> None:
    models = [make_model("model.m.totals"), make_model("model.other.totals"), model("a")]
    report = described(project(*models), {it.unique_id: Plan(View()) for it in models})

    assert render_plans(report).split()[::2] == ["m.totals", "other.totals", "a"]
    full = described(project(*models), {it.unique_id: Plan(Full((REASON,))) for it in models})
    assert full_models(full) == ["m.totals", "other.totals", "a"]


def test_a_key_of_many_columns_is_cut_on_the_terminal_alone() -> None:
    region = replace(REGION, keys=tuple(f"c{n}" for n in range(12)), time=None)
    report = described(project(model("a")), {"model.m.a": Plan(region)})

    assert render_plans(report).endswith("keys (c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more)")
    assert len(report["models"][0]["keys"]) == 12


def test_a_reason_is_shown_with_file_line_and_next_step() -> None:
    text = render_plans(described(project(model("a")), {"model.m.a": Plan(Full((REASON,)))}))

    assert "GLOBAL_AGG: models/a.sql:7: one row over all" in text
    assert "next: put an hourly model below it" in text


def test_margins_of_a_frame_are_shown() -> None:
    text = render_plans(described(project(model("a")), {"model.m.a": Plan(REGION)}))

    assert text == "a  region  keys (shop_id), time sold_at, reaches 1h after a change"


def test_a_stage_is_shown_below_its_model() -> None:
    columns = (Column("k", "string"),)
    seed = make_model("seed.m.s", materialized="seed", compiled_code=None, columns=columns)
    top = replace(
        model("top"), compiled_code="select k, count(*) as n from m.s group by k order by n limit 3"
    )
    of_project = project(seed, top)

    report = described(of_project, ProjectPlans(of_project).models)

    ((stage,),) = (it["stages"] for it in report["models"])
    assert stage["relation"].startswith("_livemart_stages.top__")
    assert (stage["strategy"], stage["keys"]) == ("signed", ["k"])
    assert render_plans(report).splitlines()[:2] == [
        "top  staged  keys (k)",
        f"     reads its stage {stage['relation']}: signed, keys (k)",
    ]
    assert full_models(report) == []


def test_a_plan_of_sql_that_was_compiled_without_answers_says_so() -> None:
    view = make_model("model.m.v", materialized="view")
    reader = replace(model("a"), depends_on=(view.unique_id,))
    lacking = Question("columns", "m.raw", "", is_lacking=True)
    there = Question("columns", "m.there", "")
    both = replace(
        project(view, reader, model("b")),
        questions={
            view.unique_id: (lacking, there),
            reader.unique_id: (lacking, Question("rows", "select 1\nfrom m.raw", "", True)),
            "model.m.b": (there,),
        },
    )
    plans = {key: Plan(Full((REASON,))) for key in both.models}

    report = described(both, plans, frozenset({"model.m.a", "model.m.b"}))

    assert [it["lacks"] for it in report["models"]] == [
        ["the columns of m.raw", "select 1 from m.raw"],
        [],
    ]
    told = [line for line in render_plans(report).splitlines() if "do not exist yet" in line]
    assert told == [
        "   planned without tables that do not exist yet: the columns of m.raw; select 1 from m.raw"
    ]


def test_what_defines_the_session_and_what_only_a_build_does_are_told_once() -> None:
    base = profile_spec({"spark.sql.session.timeZone": "Asia/Tokyo"})
    one = replace(
        model("a"),
        session=base.then(["set a.b=1"]),
        acting_hooks=("optimize\n  m.a",),
    )
    seed = make_model("seed.m.shops", materialized="seed", acting_hooks=("analyze table x",))
    shop = replace(project(one, replace(model("b"), session=base), seed), session=base)
    plans = {key: Plan(Signed((), (), ())) for key in shop.models}

    text = render_plans(described(replace(shop, acting_hooks=("grant x",)), plans))

    assert text.splitlines() == [
        "session: spark.sql.session.timeZone = Asia/Tokyo",
        "only in a build: grant x",
        "only in a build: seeds/shops.sql: analyze table x",
        "a  signed",
        "   session: set a.b=1",
        "   only in a build: optimize m.a",
        "b  signed",
    ]


def test_a_materialization_of_the_projects_own_is_told_to_run_in_a_build_alone() -> None:
    ledger = make_model("model.m.a", materialized="other", config={"materialized": "ledger"})

    text = render_plans(described(project(ledger), {"model.m.a": Plan(View())}))

    assert text.splitlines() == ["a  view", "   only in a build: its materialization ledger"]


def test_a_selection_without_a_strategy_says_why_it_lists_nothing() -> None:
    seed = make_model("seed.m.shops", materialized="seed")

    report = described(project(seed), {seed.unique_id: Plan(View())})

    assert render_plans(report).startswith("no models to plan: seeds, dbt snapshots and ")


def test_a_long_question_is_cut_on_the_terminal_alone() -> None:
    question = f"select {'x' * 300} from m.t"
    asking = replace(
        project(model("a")), questions={"model.m.a": (Question("rows", question, "1"),)}
    )

    report = described(asking, {"model.m.a": Plan(Signed((), (), ()))})

    assert report["models"][0]["asks"] == [question]
    assert render_plans(report).splitlines()[-1].endswith(f"{question[:200]} ...")


def test_what_a_model_asks_and_what_stamps_its_rows_is_told() -> None:
    asking = replace(
        project(model("a")),
        questions={"model.m.a": (Question("rows", "select\n method from m.t", "1"),)},
    )
    plan = Plan(Signed((), (), ()), stamps={"run": "'x'", "at": "'y'"})

    text = render_plans(described(asking, {"model.m.a": plan}))

    assert text.splitlines() == [
        "a  signed",
        "   stamped by the run that writes a row: at, run",
        "   asks the warehouse: select method from m.t",
    ]


def test_why_sql_has_not_the_other_strategies_is_told_in_their_order() -> None:
    no_sum = Reason("NOT_ADDITIVE", "max(amount) is no sum", None, "sum it")
    refused = {
        "signed": no_sum,
        "running": Reason("NOT_CARRIED_ON", "max(amount) is no sum up to the row", None),
        "region": REASON,
    }
    plans = {
        "model.m.a": Plan(REGION, refused={"signed": no_sum, "running": refused["running"]}),
        "model.m.b": Plan(Full((REASON,)), refused=refused),
    }

    report = described(project(model("a"), model("b")), plans)

    assert render_plans(report).splitlines() == [
        "a  region  keys (shop_id), time sold_at, reaches 1h after a change",
        "   not signed: max(amount) is no sum; sum it",
        "   not running: max(amount) is no sum up to the row",
        "b  full",
        "   GLOBAL_AGG: models/b.sql:7: one row over all",
        "     next: put an hourly model below it",
        "   not signed: max(amount) is no sum; sum it",
    ]
    refused = report["models"][1]["refused"]
    assert list(refused) == ["signed", "running", "region"]
    assert refused["signed"] == {
        "code": "NOT_ADDITIVE",
        "message": "max(amount) is no sum",
        "line": None,
        "suggestion": "sum it",
        "place": "models/b.sql",
    }


def test_only_selected_models_are_listed() -> None:
    plans = {"model.m.a": Plan(Signed((), (), ())), "model.m.b": Plan(View())}

    report = described(project(model("a"), model("b")), plans, frozenset({"model.m.b"}))

    assert [entry["name"] for entry in report["models"]] == ["b"]


def test_what_dbt_alone_builds_is_not_listed() -> None:
    seed = replace(model("a"), materialized="seed")
    history = replace(model("b"), materialized="snapshot")
    plans = {"model.m.a": Plan(Full()), "model.m.b": Plan(Full())}

    assert described(project(seed, history), plans)["models"] == []


def test_a_model_that_wants_to_be_full_is_no_fallback() -> None:
    plans = {"model.m.a": Plan(Full((REASON,))), "model.m.b": Plan(Full())}

    report = described(project(model("a"), model("b", "full")), plans)

    assert full_models(report) == ["a"]


def test_a_model_that_hooks_fill_is_no_fallback_and_says_so() -> None:
    filled = project(replace(model("a", "strict"), filled="wholly", compiled_code="select 1 as n"))
    plans = ProjectPlans(filled)

    report = described(filled, plans.models)

    assert full_models(report) == []
    assert "FILLED_BY_HOOKS: models/a.sql: hooks write rows into its table" in render_plans(report)
    assert broken_policies(filled, plans.stored) == {}
