"""Counts the orders that the files of a starter project hold, without livemart.

Used by the tests that deliver to such a project: what `deliver.py` writes differs from run to run.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def orders_by_shop(project: Path, as_of: datetime | None = None) -> Mapping[str, int]:
    """Return the orders of each shop that count, of all times or of the 24 hours before `as_of`."""
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted((project / "landing" / "orders").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            order = json.loads(line)
            newest[order["order_id"]] = max(
                newest.get(order["order_id"], order), order, key=_updated_at
            )
    return Counter(
        order["shop_id"]
        for order in newest.values()
        if order["status"] != "cancelled" and (as_of is None or _is_last_day(order, as_of))
    )


def _updated_at(order: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(order["updated_at"])


def _is_last_day(order: Mapping[str, Any], as_of: datetime) -> bool:
    return as_of - timedelta(hours=24) <= datetime.fromisoformat(order["ordered_at"]) < as_of
