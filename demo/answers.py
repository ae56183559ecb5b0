"""Reads the owner's three answers from a published snapshot, and writes them as a table.

Used by the tour. It reads the versions that the snapshot names, as any reader would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc

from livemart.delta.warehouse import Warehouse
from livemart.state.snapshots import Snapshot

_MODELS = "model.livemart."


@dataclass(frozen=True, slots=True)
class Answer:
    """One window of one restaurant; `dishes` are the names sold most, with their quantity."""

    window_hours: int
    order_count: int
    sales_amount: Decimal
    currency_code: str
    unique_customers: int
    dishes: tuple[tuple[str, int], ...]


def read_answers(warehouse: Warehouse, snapshot: Snapshot, restaurant_id: str) -> list[Answer]:
    """Return the answers of a restaurant, shortest window first, at the snapshot's versions."""
    metrics = _rows(warehouse, snapshot, "restaurant_order_metrics", restaurant_id)
    ranked = _rows(warehouse, snapshot, "restaurant_top_dishes", restaurant_id)
    return [
        Answer(
            row["window_hours"],
            row["order_count"],
            row["sales_amount"],
            row["currency_code"],
            row["unique_customers"],
            tuple(
                (dish["dish_name"], dish["quantity_sold"])
                for dish in sorted(ranked, key=lambda dish: dish["dish_rank"])
                if dish["window_hours"] == row["window_hours"]
            ),
        )
        for row in sorted(metrics, key=lambda row: row["window_hours"])
    ]


def read_name(warehouse: Warehouse, snapshot: Snapshot, restaurant_id: str) -> str:
    """Return the name of a restaurant as of the snapshot, or its id."""
    rows = _rows(warehouse, snapshot, "restaurant_order_metrics", restaurant_id)
    return next((row["restaurant_name"] or restaurant_id for row in rows), restaurant_id)


def render_answers(title: str, answers: list[Answer]) -> Iterator[str]:
    """Return the lines of a small table."""
    yield title
    yield "   window   orders  customers               sales   top dishes"
    for answer in answers:
        sales = f"{answer.sales_amount:,.2f} {answer.currency_code}"
        dishes = ", ".join(f"{quantity} x {name}" for name, quantity in answer.dishes) or "none"
        yield (
            f"   {answer.window_hours:>4} h {answer.order_count:>9,}"
            f" {answer.unique_customers:>10,} {sales:>19}   {dishes}"
        )


def describe_records(counts: Mapping[str, int]) -> str:
    """Return what a delivery holds, most frequent kind first.

    >>> describe_records({"placed": 9, "late": 1, "broken": 0})
    '9 placed, 1 late'
    """
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)


def _rows(
    warehouse: Warehouse, snapshot: Snapshot, model: str, restaurant_id: str
) -> list[dict[str, Any]]:
    """Return a model's rows of one restaurant at the version that the snapshot names."""
    state = snapshot.models[_MODELS + model]
    relation = f"mart.{model}"
    rows: list[dict[str, Any]] = warehouse.read(
        relation, state.version, filter=pc.field("restaurant_id") == restaurant_id
    ).to_pylist()
    return rows
