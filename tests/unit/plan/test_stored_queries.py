"""Which queries have a table, who makes its rows, and which tables each of them reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from livemart.plan.project_plans import ProjectPlans
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.project.graph import Column, Model, Project, SourceTable
from livemart.project.questions import Question
from tests.models import make_model

SHOP, CITY = Column("shop", "string"), Column("city", "string")
SALES = SourceTable(
    "source.m.raw.sales", "raw", "sales", "raw", "sales", (SHOP,), None, None, None, "s.yml"
)
SHOPS = make_model("seed.m.shops", materialized="seed", compiled_code=None, columns=(SHOP, CITY))
SEEN = make_model(
    "model.m.seen",
    materialized="view",
    compiled_code="select s.shop, h.city from raw.sales as s join m.shops as h on s.shop = h.shop",
    depends_on=(SALES.unique_id, SHOPS.unique_id),
)
ANY_ROW = (
    "select shop as id, city from m.seen"
    " qualify row_number() over (partition by city order by length(shop)) = 1"
)
COUNTED = make_model(
    "model.m.counted",
    compiled_code="select city, count(*) as n from m.seen group by 1",
    depends_on=(SEEN.unique_id,),
    partition_by=("city",),
)


def queries(*models: Model, **other: object) -> dict[str, StoredQuery]:
    nodes = {model.unique_id: model for model in (SHOPS, SEEN, COUNTED, *models)}
    project = Project("m", ".", "m", {SALES.unique_id: SALES}, nodes, {}, {})
    project = replace(project, **other)  # type: ignore[arg-type]
    return stored_queries(project, ProjectPlans(project).models)


def test_a_query_reads_the_tables_below_its_views() -> None:
    stored = queries()

    assert list(stored) == [SHOPS.unique_id, COUNTED.unique_id]
    counted = stored[COUNTED.unique_id]
    assert (counted.relation, counted.partition_by) == ("m.counted", ("city",))
    assert counted.reads == ("raw.sales", "m.shops")
    assert counted.parents == {SHOPS.unique_id}
    assert counted.owner == COUNTED
    assert counted.fingerprint == counted.plan.fingerprint != ""


def test_a_query_without_sql_to_analyse_reads_what_it_depends_on() -> None:
    asking = make_model("model.m.learnt", compiled_code=None, depends_on=(SEEN.unique_id,))

    learnt = queries(asking)[asking.unique_id]

    assert learnt.flat is None
    assert set(learnt.reads) == {"raw.sales", "m.shops"}
    assert learnt.parents == {SHOPS.unique_id}


def test_a_table_that_sql_names_without_ref_is_a_parent_if_it_comes_before() -> None:
    behind = make_model("model.m.behind", compiled_code="select n from m.counted, m.later")
    later = make_model("model.m.later", compiled_code="select 1 as n")

    assert queries(behind, later)[behind.unique_id].parents == {COUNTED.unique_id}


def test_a_table_of_dbt_reads_what_its_macro_may_read() -> None:
    own = make_model(
        "model.m.own",
        materialized="other",
        filled="partly",
        depends_on=(COUNTED.unique_id,),
        compiled_code="select id from raw.sales",
    )

    assert queries(own)[own.unique_id].reads == ("raw.sales", "m.counted")


def test_the_rows_are_made_by_sql_by_dbt_or_by_a_file() -> None:
    history = make_model("snapshot.m.history", materialized="snapshot")
    filled = make_model("model.m.filled", filled="partly")

    made_by = {it.owner.name: it.made_by for it in queries(history, filled).values()}

    assert made_by == {"shops": "seed", "counted": "sql", "history": "dbt", "filled": "dbt"}


def test_a_query_asks_the_warehouse_if_a_view_in_it_does() -> None:
    questions = {SEEN.unique_id: (Question("relation", "m.old", ""),)}

    stored = queries(questions=questions)

    assert [it.owner.name for it in stored.values() if it.asks_warehouse] == ["counted"]


GREATEST = make_model(
    "model.m.greatest",
    compiled_code="select city, count(*) as n from m.seen group by 1 order by n desc, city limit 3",
    depends_on=(SEEN.unique_id,),
    partition_by=("city",),
)
STAGE = "stage.m.greatest__1"


def test_a_model_that_is_cut_has_its_stage_before_it() -> None:
    reader = make_model("model.m.reader", compiled_code="select n from m.greatest")

    stored = queries(GREATEST, reader)

    stage, greatest = stored[STAGE], stored[GREATEST.unique_id]
    assert list(stored)[-3:] == [STAGE, GREATEST.unique_id, reader.unique_id]
    assert (stage.is_stage, stage.owner, stage.partition_by) == (True, GREATEST, ())
    assert stage.reads == ("raw.sales", "m.shops")
    assert stage.parents == {SHOPS.unique_id}
    assert stage.plan.strategy.name == "signed"
    assert (greatest.is_stage, greatest.stages) == (False, (STAGE,))
    assert greatest.partition_by == ("city",)
    assert greatest.reads == (stage.relation,)
    assert greatest.parents == {SHOPS.unique_id, STAGE}
    assert stored[reader.unique_id].parents == {GREATEST.unique_id}

    whole = greatest.uncut(STAGE)
    assert (whole.plan.strategy.name, whole.reads) == ("full", ("raw.sales", "m.shops"))


def test_models_of_one_name_have_separate_stages() -> None:
    other = replace(GREATEST, unique_id="model.other.greatest", schema="n")

    stages = [it for it in queries(GREATEST, other).values() if it.is_stage]

    assert len({it.relation for it in stages}) == len({it.unique_id for it in stages}) == 2
    assert {it.relation.partition("__")[0] for it in stages} == {"_livemart_stages.greatest"}


def test_another_limit_is_no_change_of_the_stage() -> None:
    code = GREATEST.compiled_code or ""

    def fingerprints(sql: str) -> tuple[str, str]:
        stored = queries(replace(GREATEST, compiled_code=sql))
        return stored[STAGE].fingerprint, stored[GREATEST.unique_id].fingerprint

    stage, greatest = fingerprints(code)
    assert fingerprints(code.replace("limit 3", "limit 2"))[0] == stage != ""
    assert fingerprints(code.replace("limit 3", "limit 2"))[1] != greatest
    assert fingerprints(code.replace("count(*)", "count(city)"))[0] != stage


@pytest.mark.parametrize(
    "other",
    [
        {"stages": "never"},
        {"policy": "full"},
        {"ties": "full", "compiled_code": f"{ANY_ROW} order by id limit 3"},
        {"filled": "partly"},
        {"in_other_runs": ("select 1 as n", "select 2 as n")},
    ],
)
def test_a_model_that_must_be_whole_is_not_cut(other: Any) -> None:
    stored = queries(replace(GREATEST, **other))

    assert STAGE not in stored
    assert stored[GREATEST.unique_id].plan.strategy.name == "full"


def test_a_model_that_asks_the_warehouse_is_not_cut() -> None:
    questions = {SEEN.unique_id: (Question("relation", "m.old", ""),)}

    assert STAGE in queries(GREATEST)
    assert STAGE not in queries(GREATEST, questions=questions)
