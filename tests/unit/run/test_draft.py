from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.landing import LandedBatch
from livemart.land.tables import create_tables
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Project, SourceTable
from livemart.project.landing_columns import ORIGIN
from livemart.run.batch_steps import Batch
from livemart.run.draft import draft_batch, snapshot_of, table_versions, undeclared_columns
from livemart.state.counts import Counts, TableCounts
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.snapshots import Kind, ModelState, SetAside, Snapshot
from tests.change_records import changes
from tests.deliveries import EVENTS
from tests.models import make_model

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BATCH = LandedBatch(
    3, NOON, {"bronze.orders": 9}, {"bronze.orders": Counts(2, 1, 0, 1)}, None, has_records=False
)
STATE = ModelState(4, "f", "signed", None, 1, 2, 0, "t")
NEWEST = Snapshot(
    snapshot_id=7,
    epoch="e",
    batch_id=2,
    kind="refresh",
    as_of=None,
    sources={"bronze.orders": 9, "crm.customers": 5},
    models={"model.m.totals": STATE, "model.m.gone": STATE},
    tests={},
    status="published",
    started_at=NOON,
    finished_at=NOON,
)


class _Tables:
    """A warehouse whose tables are all there, at version 5."""

    def exists(self, relation: str) -> bool:
        return True

    def version(self, relation: str) -> int:
        return 5

    def arrow_schema(self, relation: str) -> pa.Schema:
        return pa.schema([("order_id", pa.string()), ("fee", pa.int64()), (ORIGIN, pa.string())])

    def table_id(self, relation: str) -> str:
        return f"id of {relation}"


def _runtime() -> Any:
    customers = SourceTable(
        "source.m.crm.customers", "crm", "customers", "crm", "customers", (), None, None, None, ""
    )
    totals = make_model("model.m.totals", schema="mart")
    project = Project(
        "m", ".", "m", {customers.unique_id: customers}, {totals.unique_id: totals}, {}, {}
    )
    relations = ["bronze.orders", "bronze.dishes"]
    plans = SimpleNamespace(
        stored={}, renew=lambda: None, readers_without=lambda unique_id, column: ["model.m.totals"]
    )
    return SimpleNamespace(
        project=project, warehouse=_Tables(), landed_relations=relations, plans=plans
    )


def _draft(frontier: Snapshot | None = NEWEST, landed: LandedBatch = BATCH) -> Batch:
    context: Any = SimpleNamespace(epoch="e")
    kind: Kind = "refresh" if frontier else "build"
    return draft_batch(kind, _runtime(), context, landed, frontier, NOON, lambda: NOON)


def test_tables_that_livemart_does_not_land_are_pinned_as_well() -> None:
    assert _draft().sources == {"bronze.orders": 9, "crm.customers": 5}


def test_a_snapshot_follows_the_frontier_and_counts_every_landed_table() -> None:
    aside = {"model.m.late": SetAside(2, None, "f", "model.m.late", "no")}

    snapshot = snapshot_of(_draft(), _runtime(), {"model.m.totals": STATE}, aside)

    assert (snapshot.snapshot_id, snapshot.epoch, snapshot.batch_id) == (8, "e", 3)
    assert (snapshot.kind, snapshot.set_aside) == ("refresh", aside)
    assert snapshot.landed == {
        "bronze.orders": TableCounts(2, 1, 0, 1, "id of bronze.orders"),
        "bronze.dishes": TableCounts(0, 0, 0, 0, "id of bronze.dishes"),
    }
    assert snapshot_of(_draft(None), _runtime(), {}, {}).snapshot_id == 1


def test_a_snapshot_keeps_how_records_drifted_and_which_columns_nobody_declares() -> None:
    tip = DriftedField(DriftKind.CASE_CHANGED, "Tip", "the column is tip")
    runtime = _runtime()
    runtime.project.sources[EVENTS.unique_id] = EVENTS

    drafted = _draft(landed=replace(BATCH, drift={EVENTS.relation: (tip,)}))
    snapshot = snapshot_of(drafted, runtime, {}, {})

    fee = DriftedField(DriftKind.UNDECLARED, "fee", "bigint", ("totals",))
    assert snapshot.drift == {EVENTS.relation: (tip, fee)}


def test_versions_are_those_of_sources_and_of_models_that_the_project_still_has() -> None:
    versions = table_versions(ProjectPlans(_runtime().project).stored, NEWEST)

    assert versions == {"bronze.orders": 9, "crm.customers": 5, "mart.totals": 4}


ID = EVENTS.unique_id
MODELS = [
    make_model(f"model.m.{name}", compiled_code=sql, depends_on=(parent,), materialized=kind)
    for name, sql, parent, kind in [
        ("stg_events", "select order_id, status from bronze.order_events", ID, "view"),
        ("everything", "select * from bronze.order_events", ID, "table"),
        ("tips", "select order_id, tip from bronze.order_events", ID, "table"),
        ("counts", "select status, count(*) as n from bronze.order_events group by 1", ID, "table"),
        ("totals", "select order_id from m.stg_events", "model.m.stg_events", "table"),
    ]
]


@pytest.fixture
def runtime(tmp_path: Path) -> Any:
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [EVENTS], "epoch")
    models = {model.unique_id: model for model in MODELS}
    project = Project("m", ".", "m", {ID: EVENTS}, models, {}, {})
    plans = ProjectPlans(project, warehouse.column_kinds)
    return SimpleNamespace(project=project, warehouse=warehouse, plans=plans)


def test_a_column_that_evolve_added_names_the_models_that_do_not_use_it(runtime: Any) -> None:
    before = undeclared_columns(runtime)

    runtime.warehouse.add_columns(EVENTS.relation, [pa.field("tip", pa.string())], Tag("t", 0))

    assert before == {}
    assert undeclared_columns(runtime) == {
        EVENTS.relation: (
            DriftedField(DriftKind.UNDECLARED, "tip", "string", ("stg_events", "counts")),
        )
    }


def test_the_columns_of_an_envelope_are_landings_own(tmp_path: Path) -> None:
    warehouse, source = Warehouse(tmp_path), changes("changed")
    create_tables(warehouse, [source], "epoch")
    project = Project("m", ".", "m", {source.unique_id: source}, {}, {}, {})
    plans = ProjectPlans(project, warehouse.column_kinds)
    runtime: Any = SimpleNamespace(project=project, warehouse=warehouse, plans=plans)

    assert undeclared_columns(runtime) == {}
