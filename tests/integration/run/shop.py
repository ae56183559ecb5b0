"""A shop whose orders come, are corrected and deleted, and models of any kind over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.mini import PROJECT
from tests.project_run import ProjectRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: shop
    schema: shop
    tables:
      - name: orders
        config:
          event_time: ordered_at
          meta:
            livemart:
              format: json
              path: orders/*.jsonl
              keys: [order_id]
              sequence_by: [updated_at]
              apply_as_deletes: "op = 'd'"
              max_future: 36500 days
        columns:
          - {name: order_id, data_type: bigint}
          - {name: shop_id, data_type: string}
          - {name: method, data_type: string}
          - {name: amount, data_type: "decimal(10,2)"}
          - {name: ordered_at, data_type: timestamp}
          - {name: updated_at, data_type: timestamp}
          - {name: op, data_type: string}
  - name: livemart
    schema: livemart
    tables:
      - name: clock
        columns:
          - {name: as_of, data_type: timestamp}
"""
ORDERS = "{{ source('shop', 'orders') }}"
# Order, shop, method, amount, time.
Order = tuple[int, str, str, str, str]
FIRST: tuple[Order, ...] = (
    (1, "a", "card", "10.00", "2026-03-04T02:00:00Z"),
    (2, "a", "cash", "5.00", "2026-03-04T15:00:00Z"),
    (3, "b", "card", "7.00", "2026-03-07T08:00:00Z"),
)
THEN: tuple[Order, ...] = (
    (4, "a", "voucher", "3.00", "2026-03-05T02:00:00Z"),
    (5, "b", "card", "2.00", "2026-03-08T07:30:00Z"),
)


def order(
    order_id: int, shop: str, method: str, amount: str, at: str, *, later: int = 0, op: str = "c"
) -> dict[str, Any]:
    updated = datetime.fromisoformat(at).replace(microsecond=later)
    return {
        "order_id": order_id,
        "shop_id": shop,
        "method": method,
        "amount": amount,
        "ordered_at": at,
        "updated_at": updated.isoformat(),
        "op": op,
    }


def shop_project(
    spark: SparkSession,
    root: Path,
    models: Mapping[str, str],
    orders: Iterable[Order] = FIRST,
    **flags: object,
) -> ProjectRun:
    """Return a project of these models alone, with orders delivered."""
    run = ProjectRun(spark, root, PROJECT, flags=flags)
    run.replace(SOURCES, **models)
    run.deliver("orders", *(order(*row) for row in orders))
    return run
