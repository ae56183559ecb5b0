"""Which queries have a table, who makes its rows, and which tables each of them reads."""

from __future__ import annotations

from dataclasses import replace

from livemart.plan.project_plans import ProjectPlans
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.project.graph import Model, Project, SourceTable
from livemart.project.questions import Question
from tests.models import make_model

SALES = SourceTable(
    "source.m.raw.sales", "raw", "sales", "raw", "sales", (), None, None, None, "_sources.yml"
)
SHOPS = make_model("seed.m.shops", materialized="seed", compiled_code=None)
SEEN = make_model(
    "model.m.seen",
    materialized="view",
    compiled_code="select s.shop, h.city from raw.sales as s join m.shops as h on s.shop = h.shop",
    depends_on=(SALES.unique_id, SHOPS.unique_id),
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
    python = make_model("model.m.learnt", language="python", depends_on=(SEEN.unique_id,))

    learnt = queries(python)[python.unique_id]

    assert learnt.flat is None
    assert set(learnt.reads) == {"raw.sales", "m.shops"}
    assert learnt.parents == {SHOPS.unique_id}


def test_a_table_that_sql_names_without_ref_is_a_parent_if_it_comes_before() -> None:
    behind = make_model("model.m.behind", compiled_code="select n from m.counted, m.later")
    later = make_model("model.m.later", compiled_code="select 1 as n")

    assert queries(behind, later)[behind.unique_id].parents == {COUNTED.unique_id}


def test_the_rows_are_made_by_sql_by_dbt_or_by_a_file() -> None:
    history = make_model("snapshot.m.history", materialized="snapshot")
    filled = make_model("model.m.filled", filled="partly")

    made_by = {it.owner.name: it.made_by for it in queries(history, filled).values()}

    assert made_by == {"shops": "seed", "counted": "sql", "history": "dbt", "filled": "dbt"}


def test_a_query_asks_the_warehouse_if_a_view_in_it_does() -> None:
    questions = {SEEN.unique_id: (Question("relation", "m.old", ""),)}

    stored = queries(questions=questions)

    assert [it.owner.name for it in stored.values() if it.asks_warehouse] == ["counted"]
