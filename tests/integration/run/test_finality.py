"""Windows are provisional, then final; what comes later corrects them, and is listed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.inspect.corrections import find_corrections, render_corrections
from livemart.plan.project_plans import ProjectPlans
from tests.integration.run.shop import ORDERS, SOURCES, order, shop_project
from tests.project_run import NOON, ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WINDOW = "window(ordered_at, '5 minutes').end"
MODELS = {
    # By signed change, and with the flag among the keys.
    "windows": f"""
        select {_WINDOW} as window_end, shop_id, count(*) as orders, sum(amount) as sales,
            {{{{ is_final("{_WINDOW}", 'shop', 'orders') }}}} as is_final
        from {ORDERS} group by all""",
    # By region: the most is not additive.
    "most": f"""
        select {_WINDOW} as window_end, max(amount) as most,
            {{{{ is_final("{_WINDOW}") }}}} as final
        from {ORDERS} group by 1""",
    # Rows, and groups that the watermark lets in.
    "states": f"""
        select order_id,
            case when ordered_at < {{{{ watermark() }}}} then 'over' else 'open' end as state
        from {ORDERS}""",
    "quiet": f"""
        select shop_id, max(ordered_at) as last_at from {ORDERS} group by 1
        having max(ordered_at) <= {{{{ watermark() }}}} - interval 10 minutes""",
}


def _at(minute: int, order_id: int, shop: str = "a", amount: str = "1.00", **more: Any) -> Any:
    return order(order_id, shop, "card", amount, f"2026-03-01T12:{minute:02d}:00Z", **more)


def _finals(run: ProjectRun) -> dict[str, tuple[int, bool]]:
    return {
        f"{row['window_end']:%H:%M} {row['shop_id']}": (row["orders"], row["is_final"])
        for row in run.rows("mini.windows")
    }


def test_windows_become_final_and_late_orders_correct_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, MODELS, ())
    sources = SOURCES.replace("path: orders", "lateness: 5 minutes\n              path: orders")
    run.replace(sources, **MODELS)
    run.now = NOON + timedelta(minutes=30)
    run.deliver("orders", _at(1, 1), _at(3, 2), _at(4, 3, "b"), _at(9, 4))
    run.refresh()
    assert _finals(run) == {"12:05 a": (2, False), "12:05 b": (1, False), "12:10 a": (1, False)}

    # The watermark reaches 12:05, and the window that ends there is over.
    run.deliver("orders", _at(10, 5))
    run.refresh()
    assert _finals(run) == {
        "12:05 a": (2, True),
        "12:05 b": (1, True),
        "12:10 a": (1, False),
        "12:15 a": (1, False),
    }

    # Late: one more order, a correction, one that is taken back, and a shop's first.
    run.deliver(
        "orders",
        _at(2, 6, amount="5.00"),
        _at(3, 2, amount="9.00", later=1),
        _at(4, 3, "b", later=1, op="d"),
        _at(4, 7, "c"),
        _at(25, 8),
    )
    run.refresh()
    assert _finals(run)["12:05 a"] == (3, True)
    assert "12:05 b" not in _finals(run)
    assert {row["shop_id"]: str(row["last_at"])[11:16] for row in run.rows("mini.quiet")} == {
        "c": "12:04"
    }
    assert run.differing() == []

    assert set(strategies(run.newest).values()) <= {"signed", "region"}, reasons(run.newest)
    project, warehouse = run.runtime.project, run.warehouse
    stored = ProjectPlans(project, warehouse.column_kinds).stored
    found = find_corrections(warehouse, project, stored, run.log.since(NOON))
    by_window = {
        (row.model, row.key.get("shop_id")): (str(row.late_by), dict(row.changes))
        for row in found.rows
    }
    assert by_window[("windows", "a")][0] == "0:00:00"
    assert {name: list(map(str, it)) for name, it in by_window["windows", "a"][1].items()} == {
        "orders": ["2", "3"],
        "sales": ["2.00", "15.00"],
    }
    assert by_window["windows", "b"][1]["orders"] == (1, None)
    assert by_window["windows", "c"][1]["orders"] == (None, 1)
    assert list(map(str, by_window["most", None][1]["most"])) == ["1.00", "9.00"]
    assert len(found.rows) == 4
    assert "12:05:00" in render_corrections(found)
