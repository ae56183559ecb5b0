"""Orders of the landing benchmarks: their columns, their records, and a source of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from livemart.project.graph import Column, SourceTable, StreamSpec

COLUMNS = {
    "order_id": "string",
    "restaurant_id": "string",
    "ordered_at": "timestamp",
    "status": "string",
    "total": "decimal(10,2)",
    "items": "int",
    "updated_at": "timestamp",
}
_START = datetime(2026, 3, 1, tzinfo=UTC)


def orders_of(start: int, end: int) -> Iterator[dict[str, object]]:
    """Yield the orders of some numbers, as records of JSON."""
    for number in range(start, end):
        at = (_START + timedelta(seconds=number % 86_400)).isoformat()
        yield {
            "order_id": f"o{number}",
            "restaurant_id": f"r{number % 500}",
            "ordered_at": at,
            "status": "placed",
            "total": f"{number % 9_000 / 100:.2f}",
            "items": number % 7 + 1,
            "updated_at": at,
        }


def source_of(name: str, spec: StreamSpec) -> SourceTable:
    """Return a source of orders."""
    columns = tuple(Column(name, data_type) for name, data_type in COLUMNS.items())
    names = (f"source.bench.shop.{name}", "shop", name, "bronze", name)
    return SourceTable(*names, columns, "ordered_at", None, spec, "bench/orders.py")
