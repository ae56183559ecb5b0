"""The project of `tests/projects/mini` with its own warehouse and landing folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.project_run import NOON, PROJECTS, ProjectRun

PROJECT = PROJECTS / "mini"


@dataclass
class Mini(ProjectRun):
    """A project of shops: sales that are corrected and deleted, and visits that are only added."""

    source: Path = PROJECT

    def totals(self) -> dict[str, tuple[int, str]]:
        """Return count and amount of `shop_totals` by shop."""
        return {
            row["shop_id"]: (row["sale_count"], str(row["sales_amount"]))
            for row in self.rows("mini.shop_totals")
        }


def sale(
    sale_id: str,
    shop_id: str = "a",
    amount: str = "1.00",
    *,
    minutes: float = -10,
    updated: float | None = None,
    op: str = "c",
) -> dict[str, Any]:
    """Return a record of `sales`; minutes count from noon."""
    return {
        "sale_id": sale_id,
        "shop_id": shop_id,
        "amount": amount,
        "sold_at": (NOON + timedelta(minutes=minutes)).isoformat(),
        "updated_at": (
            NOON + timedelta(minutes=minutes if updated is None else updated)
        ).isoformat(),
        "op": op,
    }


def visit(shop_id: str, minutes: float = -10) -> dict[str, Any]:
    """Return a record of `visits`."""
    return {"shop_id": shop_id, "visited_at": (NOON + timedelta(minutes=minutes)).isoformat()}
