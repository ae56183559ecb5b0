"""Columns that only the table has are named, with the models that go on without them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.tables import create_tables
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Project
from livemart.run.undeclared_columns import undeclared_columns
from livemart.state.drift import DriftedField, DriftKind
from tests.change_records import changes
from tests.deliveries import EVENTS
from tests.models import make_model

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
    plans = ProjectPlans(project, warehouse.column_names)
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
    plans = ProjectPlans(project, warehouse.column_names)
    runtime: Any = SimpleNamespace(project=project, warehouse=warehouse, plans=plans)

    assert undeclared_columns(runtime) == {}
