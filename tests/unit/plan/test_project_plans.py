"""The plans of a project: models on seeds, dbt snapshots and others, tests, and kept policies."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from livemart.errors import PlanError
from livemart.plan.plan import Full, Plan
from livemart.plan.project_plans import ProjectPlans, is_same_text, require_policies
from livemart.plan.reasons import Reason
from livemart.plan.sql import parse
from livemart.plan.stored_queries import stored_queries
from livemart.project.graph import Column, Model, Policy, Project, SourceTable
from livemart.project.session_spec import PLAIN, SessionSpec
from tests.models import make_model

SEED = make_model(
    "seed.m.shops",
    materialized="seed",
    compiled_code=None,
    columns=(Column("shop_id", None), Column("city", None)),
)
BY_CITY = "select city, count(*) as n from m.shops group by city"
HISTORY = make_model("snapshot.m.history", materialized="snapshot", compiled_code=BY_CITY)
READER = make_model("model.m.reader", compiled_code=BY_CITY)


def project(*models: Model) -> Project:
    return Project("m", ".", "m", {}, {model.unique_id: model for model in models}, {}, {})


def test_a_model_over_a_seed_is_planned_before_the_first_build() -> None:
    plans = ProjectPlans(project(SEED, READER)).models

    assert plans[READER.unique_id].strategy.name == "signed"


def test_a_dbt_snapshot_keeps_many_rows_of_each_key_of_its_sql() -> None:
    reader = replace(
        READER, compiled_code="select city, count(*) as versions from m.history group by city"
    )
    by_key = replace(READER, compiled_code="select city, n, dbt_valid_to from m.history")

    grouped = ProjectPlans(project(SEED, HISTORY, reader)).models
    plain = ProjectPlans(project(SEED, HISTORY, by_key)).models

    assert grouped[HISTORY.unique_id].strategy == Full()
    assert grouped[reader.unique_id].strategy.name == "signed"
    assert plain[by_key.unique_id].unique_key == ()


def test_a_dbt_snapshot_may_rename_its_own_columns() -> None:
    history = replace(
        HISTORY,
        config={
            "snapshot_meta_column_names": {"dbt_valid_to": "ended_at"},
            "hard_deletes": "new_record",
        },
    )

    plans = ProjectPlans(project(SEED, history)).models

    assert plans[history.unique_id].names == (
        *("city", "n", "dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "ended_at"),
        "dbt_is_deleted",
    )


def test_what_a_materialization_of_the_project_stores_is_not_known() -> None:
    parent = replace(
        READER, unique_id="model.m.p", identifier="p", materialized="other", columns=SEED.columns
    )
    reader = replace(READER, compiled_code="select shop_id, city from m.p")

    plan = ProjectPlans(project(SEED, parent, reader)).models[reader.unique_id]

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", "INPUT_NOT_IN_DELTA")


def test_what_a_dbt_snapshot_keeps_is_part_of_what_it_is() -> None:
    def fingerprint_of(**config: object) -> str:
        node = make_model("snapshot.m.history", materialized="snapshot", config=config)
        project = Project("m", ".", "m", {}, {node.unique_id: node}, {}, {})
        return ProjectPlans(project).models[node.unique_id].fingerprint

    assert fingerprint_of(check_cols="all") == fingerprint_of(check_cols="all", tags=["x"])
    assert fingerprint_of(check_cols="all") != fingerprint_of(check_cols=["n"])


def test_any_setting_may_shape_a_table_of_a_custom_materialization() -> None:
    def fingerprint_of(start: str) -> str:
        own = make_model(
            "model.m.own", materialized="other", filled="partly", config={"start_date": start}
        )
        project = Project("m", ".", "m", {}, {own.unique_id: own}, {}, {})
        return ProjectPlans(project).models[own.unique_id].fingerprint

    assert fingerprint_of("2020-01-01") != fingerprint_of("2026-01-01")


def test_a_model_without_compiled_sql_is_full_and_says_why() -> None:
    model = make_model("model.m.scored", compiled_code=None)

    plan = ProjectPlans(Project("m", ".", "m", {}, {model.unique_id: model}, {}, {})).models[
        model.unique_id
    ]

    assert [reason.code for reason in plan.reasons] == ["PARSE_UNSUPPORTED"]


@pytest.mark.parametrize("other", [{"shop_id": "number"}, {"shop_id": "string", "city": "number"}])
def test_a_project_is_planned_again_only_when_a_table_has_other_columns(
    other: dict[str, str],
) -> None:
    columns = {"m.shops": {"shop_id": "string", "city": "string"}}
    plans = ProjectPlans(project(SEED, READER), columns.get)
    first = plans.models

    plans.renew()
    unchanged = plans.models
    columns["m.shops"] = other
    plans.renew()

    assert unchanged is first
    assert plans.models is not first


def test_sql_of_rows_is_told_from_sql_of_groups() -> None:
    plans = ProjectPlans(project(SEED, READER))

    rows = plans.row_query("select city from m.shops where shop_id is null", PLAIN)

    assert rows is not None
    assert rows.signed.anchors == (0,)
    assert plans.row_query(BY_CITY, PLAIN) is None


ZONE = SessionSpec(statements=("set time zone 'Asia/Tokyo'",))
NET = "create temporary function net(x int) returns int return x"


@pytest.mark.parametrize(
    ("session", "of_view", "code"),
    [
        (ZONE, ZONE, None),
        (ZONE.then([NET]), ZONE, None),
        (ZONE, PLAIN, "SESSION_SETTING"),
        (PLAIN, ZONE, "SESSION_SETTING"),
        (SessionSpec((("spark.sql.caseSensitive", "true"),)), PLAIN, "SESSION_SETTING"),
        (SessionSpec(statements=("use shop",)), PLAIN, "SESSION_SETTING"),
        (SessionSpec(statements=(NET.replace("net", "count"),)), PLAIN, "SESSION_SETTING"),
    ],
)
def test_a_view_is_read_as_sql_only_where_it_means_the_same(
    session: SessionSpec, of_view: SessionSpec, code: str | None
) -> None:
    view = make_model(
        "model.m.staged",
        materialized="view",
        compiled_code="select shop_id, city from m.shops",
        session=of_view,
    )
    reader = replace(READER, compiled_code=BY_CITY.replace("shops", "staged"), session=session)
    plans = ProjectPlans(project(SEED, view, reader))

    plan = plans.models[READER.unique_id]

    assert [reason.code for reason in plan.reasons] == ([code] if code else [])
    assert isinstance(plan.strategy, Full) == (code is not None)
    query = plans.row_query("select shop_id from m.staged where city is null", session)
    assert (query is None) == (code is not None)


def test_a_function_that_reads_tables_counts_beside_one_of_its_name() -> None:
    made = (
        "create or replace function shop.rate() returns int return (select max(n) from m.rates)",
        "create or replace function other.rate() returns int return 1",
    )
    for statements in (made, made[::-1]):
        reader = replace(
            READER,
            compiled_code="select shop_id, shop.rate() as rate, other.rate() as one from m.shops",
            session=SessionSpec(statements=statements),
        )

        strategy = ProjectPlans(project(SEED, reader)).models[READER.unique_id].strategy

        assert isinstance(strategy, Full)
        assert strategy.is_volatile


def test_another_session_is_another_fingerprint_of_the_same_text() -> None:
    plain, zoned = (
        ProjectPlans(project(SEED, replace(READER, session=session))).models[READER.unique_id]
        for session in (PLAIN, ZONE)
    )

    assert plain.fingerprint != zoned.fingerprint
    assert is_same_text(plain.fingerprint, zoned.fingerprint)
    assert not is_same_text(plain.fingerprint, "other")


def test_a_view_is_unique_by_its_own_sql() -> None:
    view = replace(READER, materialized="view")

    assert ProjectPlans(project(SEED, view)).unique_key(view.unique_id) == ("city",)
    assert ProjectPlans(project(SEED, view)).unique_key("model.m.other") == ()


FULL = Plan(Full((Reason("GLOBAL_AGG", "count(*) over all rows", 3),)))


def policy_project(policy: Policy) -> Project:
    model = make_model(
        "model.shop.totals",
        compiled_code="select count(*) as n from shop.sales",
        policy=policy,
    )
    return Project("shop", ".", "shop", {}, {model.unique_id: model}, {}, {})


@pytest.mark.parametrize("policy", ["incremental", "strict"])
def test_a_model_that_must_be_incremental_and_cannot_is_an_error(policy: str) -> None:
    project = policy_project(cast(Policy, policy))

    with pytest.raises(PlanError, match=r"models/totals\.sql:3: .*GLOBAL_AGG") as caught:
        require_policies(project, stored_queries(project, {"model.shop.totals": FULL}))

    assert caught.value.code == "POLICY_NOT_MET"


@pytest.mark.parametrize("policy", ["auto", "full"])
def test_other_models_may_be_recomputed_in_full(policy: str) -> None:
    project = policy_project(cast(Policy, policy))

    require_policies(project, stored_queries(project, {"model.shop.totals": FULL}))


def _in_runs(template: str, **values: object) -> Model:
    """Return a model of a template as of this run, and as of the two fixed ones."""
    this, *others = (template.replace("{run}", run) for run in ("now", "first", "second"))
    return make_model("model.m.of_run", compiled_code=this, in_other_runs=tuple(others), **values)


def _planned(*models: Model) -> Plan:
    return ProjectPlans(project(SEED, *models)).models[models[-1].unique_id]


def test_what_stamps_rows_is_no_part_of_what_is_planned() -> None:
    plan = _planned(_in_runs("select city, count(*) as n, '{run}' as run from m.shops group by 1"))

    assert plan.strategy.name == "signed"
    assert (plan.stamps, plan.names) == ({"run": "'now'"}, ("city", "n", "run"))
    assert plan.unique_key == ("city",)


def test_what_differs_and_is_not_selected_changes_nothing() -> None:
    comment = _in_runs(f"{BY_CITY} -- by {{run}}")
    view = replace(
        _in_runs("select *, '{run}' as run from m.shops", materialized="view"),
        unique_id="model.m.staged",
        identifier="staged",
    )
    reader = replace(
        READER,
        compiled_code="select city, count(*) as n from m.staged group by city",
        depends_on=(view.unique_id,),
    )

    for plan in (_planned(comment), _planned(view, reader)):
        assert (plan.strategy.name, plan.stamps) == ("signed", {})


@pytest.mark.parametrize(
    "template", ["select city from m.shops where city < '{run}'", "select s.city from m.{run} as s"]
)
def test_rows_that_depend_on_the_run_are_recomputed_under_a_fingerprint_of_their_own(
    template: str,
) -> None:
    varying = _in_runs(template)
    plain = replace(varying, in_other_runs=(), compiled_code=varying.in_other_runs[0])

    plan = _planned(varying)

    assert isinstance(plan.strategy, Full) and plan.strategy.is_volatile
    assert plan.varies_with_run
    assert plan.fingerprint != _planned(plain).fingerprint


def test_a_project_that_is_planned_again_keeps_the_plans_of_what_has_not_changed() -> None:
    stamped = _in_runs("select city, '{run}' as run from m.shops")
    later = replace(stamped, compiled_code="select city, 'later' as run from m.shops")
    by_shop = replace(SEED, columns=(*SEED.columns, Column("country", None)))

    before = ProjectPlans(project(SEED, READER, stamped))
    first = before.models
    second = ProjectPlans(project(SEED, READER, later), before=before).models
    wider = ProjectPlans(project(by_shop, READER), before=before).models

    assert second[READER.unique_id].strategy is first[READER.unique_id].strategy
    assert wider[READER.unique_id].strategy is not first[READER.unique_id].strategy
    assert second[later.unique_id].stamps == {"run": "'later'"}
    assert second[later.unique_id].fingerprint == first[later.unique_id].fingerprint


def test_a_project_that_is_planned_again_reads_only_the_sql_that_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = make_model(
        "model.m.seen",
        materialized="view",
        compiled_code="select city as seen_again from m.shops",
        depends_on=(SEED.unique_id,),
    )
    readers = [
        make_model(
            f"model.m.reader_{number}",
            compiled_code=f"select seen_again, count(*) as n{number} from m.seen group by 1",
            depends_on=(view.unique_id,),
        )
        for number in range(4)
    ]
    before = ProjectPlans(project(SEED, view, *readers))
    read: list[str] = []
    tokens = parse.tokens_of

    def reading(text: str) -> object:
        read.append(text)
        return tokens(text)

    monkeypatch.setattr(parse, "tokens_of", reading)
    ProjectPlans(project(SEED, view, *readers), before=before)
    # A seed has no SQL.
    assert set(read) <= {"\n"}

    other = replace(readers[1], compiled_code="select upper(seen_again) as pivot from m.seen")
    after = ProjectPlans(project(SEED, view, readers[0], other, *readers[2:]), before=before)
    assert any("pivot" in text for text in read)
    assert all("pivot" in text for text in read if text != "\n")
    assert after.models[other.unique_id].names == ("pivot",)
    assert after.models[readers[0].unique_id] == before.models[readers[0].unique_id]


@pytest.mark.parametrize(
    ("code", "strategy"),
    [
        ("select *, 1 as one from m.shops order by city limit 3", "signed"),
        ("select city, approx_top_k(shop_id) as ids from m.shops group by city", "signed"),
        ("select a.* from m.shops as a full outer join m.shops as b on a.city = b.city", "signed"),
        # Spark names the unnamed column.
        ("select city, count(*) from m.shops limit 3", "full"),
    ],
)
def test_a_model_on_one_that_is_recomputed_is_planned_before_both_are_built(
    code: str, strategy: str
) -> None:
    parent = make_model("model.m.parent", compiled_code=code)
    reader = replace(READER, compiled_code="select city, count(*) as n from m.parent group by city")

    plans = ProjectPlans(project(SEED, parent, reader)).models

    assert plans[parent.unique_id].strategy.name == "full"
    assert plans[reader.unique_id].strategy.name == strategy


CHANGES = make_model(
    "seed.m.changes",
    materialized="seed",
    compiled_code=None,
    columns=(Column("id", None), Column("city", None), Column("changed_at", None)),
)
NEWEST = (
    "select * from m.changes qualify row_number() over (partition by id order by changed_at) = 1"
)


def test_an_order_that_may_tie_is_a_note_unless_its_author_asks_for_more() -> None:
    model = make_model("model.m.newest", compiled_code=NEWEST, policy="strict")
    whole = replace(model, ties="full")

    plans, plans_of_whole = (ProjectPlans(project(CHANGES, it)) for it in (model, whole))
    plan, plan_of_whole = plans.models[model.unique_id], plans_of_whole.models[model.unique_id]

    require_policies(plans.project, plans.stored)
    assert (plan.strategy.name, plan.notes[0].code) == ("region", "NONDETERMINISTIC_ORDER")
    assert isinstance(plan_of_whole.strategy, Full)
    assert plan_of_whole.strategy.reasons[1:] == plan.ties
    with pytest.raises(
        PlanError,
        match="the model says `ties: full`; NONDETERMINISTIC_ORD",
    ):
        require_policies(plans_of_whole.project, plans_of_whole.stored)


@pytest.mark.parametrize(
    ("materialized", "noted"), [("view", "model.m.newest"), ("ephemeral", "model.m.ids")]
)
def test_what_each_reader_of_a_view_decides_for_itself_is_noted_once(
    materialized: str, noted: str
) -> None:
    newest = make_model(
        "model.m.newest",
        compiled_code=NEWEST,
        materialized=materialized,
        depends_on=("seed.m.changes",),
    )
    readers = [
        make_model(
            f"model.m.{name}s",
            compiled_code=f"select {name} from ({NEWEST}) as newest",
            depends_on=(newest.unique_id,),
        )
        for name in ("id", "city")
    ]

    plans = ProjectPlans(project(CHANGES, newest, *readers)).models
    fewer = ProjectPlans(project(CHANGES, newest, readers[0])).models

    notes = {
        unique_id: [note.message for note in plan.notes if "decide apart" in note.message]
        for unique_id, plan in plans.items()
    }
    assert {unique_id for unique_id, told in notes.items() if told} == {noted}
    assert notes[noted] == [
        "rows may tie: ORDER BY changes.changed_at in newest, and 2 tables decide apart"
    ]
    assert not any("decide apart" in note.message for plan in fewer.values() for note in plan.notes)


@pytest.mark.parametrize(
    ("sql", "is_told"),
    [
        ("select city from b.shops", True),
        ("select * from b.shops", False),
        ("select count(*) as n from b.shops", True),
        ("select s.city from b.shops as s union select s.tip from b.shops as s", False),
        # The columns that these need are unknown.
        ("select city from b.shops intersect select city from b.shops", True),
        ("select tip from b.shops intersect select city from b.shops", False),
        ("select * from b.shops intersect select * from b.shops", False),
        ("select nonsense(", False),
    ],
)
def test_a_reader_without_a_column_is_told_where_that_is_certain(sql: str, is_told: bool) -> None:
    columns = (Column("shop_id", "int"), Column("city", "string"), Column("tip", "string"))
    source = SourceTable("s.b.shops", "b", "shops", "b", "shops", columns, None, None, None, "")
    reader = replace(READER, compiled_code=sql, depends_on=("s.b.shops",))
    other = replace(READER, unique_id="model.m.other", identifier="other")
    models = {model.unique_id: model for model in (SEED, reader, other)}
    plans = ProjectPlans(Project("m", ".", "m", {"s.b.shops": source}, models, {}, {}))

    assert plans.readers_without("s.b.shops", "TIP") == ([reader.unique_id] if is_told else [])
