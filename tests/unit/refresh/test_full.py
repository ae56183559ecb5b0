"""The SQL of a full refresh: which version of which table it reads."""

from __future__ import annotations

from pathlib import Path

from livemart.delta.warehouse import Warehouse
from livemart.plan.planner import Inputs, plan_query
from livemart.plan.stored_queries import stored_queries
from livemart.project.graph import Project
from livemart.refresh.full import full_query
from livemart.refresh.inputs import PinnedInputs
from tests.models import make_model

SQL = (
    "select o.order_id, l.name from raw.orders as o"
    " left join delta.`/data/Labels` as l on o.id = l.id"
    " left join other.`Raw`.Orders as x on o.id = x.id"
)


def test_a_table_outside_of_the_warehouse_is_read_as_it_was_written(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    plan = plan_query(SQL, Inputs({"raw.orders": ("order_id", "id")}))
    model = make_model("model.m.labelled", compiled_code=SQL)
    project = Project("m", ".", "m", {}, {model.unique_id: model}, {}, {})
    (stored,) = stored_queries(project, {model.unique_id: plan}).values()

    query = full_query(stored, PinnedInputs(warehouse, {}, {"raw.orders": 2}))

    assert "left join delta.`/data/Labels` as l" in query
    assert "left join other.`Raw`.Orders as x" in query
    assert f"(select * from delta.`{tmp_path}/raw/orders` version as of 2) as o" in query
