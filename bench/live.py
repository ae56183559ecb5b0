"""Batches of orders as they come: 5 minutes each, some of them late, some correct older ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.history import END, ORDERS, History, make_orders
from livemart.land.hand_over import hand_over
from livemart.storage.location import StoragePlace

STEP = timedelta(minutes=5)
_LATE_SHARE = 0.02
_CORRECTED_SHARE = 0.01
_LATEST = timedelta(hours=48)
# An order arrives a moment before its batch is landed.
_TRANSIT = timedelta(seconds=20)
# Numbers of live orders start here: apart from those of any history.
_FIRST = 50_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Orders that arrive in the 5 minutes that end with `now`, with the columns of `ORDERS`."""

    now: datetime
    orders: pa.Table

    def deliver(self, landing: StoragePlace, number: int) -> None:
        """Put the batch below the landing folder."""
        deliver_rows(landing, "orders", number, self.orders)


def deliver_rows(landing: StoragePlace, source: str, number: int, rows: pa.Table) -> None:
    """Put rows below the landing folder as one file of JSON lines."""
    lines = (json.dumps(row, default=_plain) + "\n" for row in rows.to_pylist())
    hand_over(landing / source, f"live-{number:04}.jsonl", "".join(lines).encode())


def make_batches(history: History, count: int, size: int) -> list[Batch]:
    """Return `count` batches of `size` orders that follow a history."""
    rng = np.random.default_rng([history.seed, 2_000_000])
    day = END - timedelta(days=1)
    recent = pa.concat_tables(history.chunks(day))
    recent = recent.filter(pc.greater_equal(recent["ordered_at"], pa.scalar(day)))
    corrected = min(round(size * _CORRECTED_SHARE), recent.num_rows // count)
    late = round(size * _LATE_SHARE)
    chosen = rng.permutation(recent.num_rows)[: corrected * count]
    batches = []
    for number in range(count):
        now = END + STEP * (number + 1) - timedelta(seconds=1)
        old = recent.take(pa.array(chosen[number * corrected : (number + 1) * corrected]))
        reach = np.full(size - corrected, STEP / timedelta(microseconds=1))
        reach[:late] = _LATEST / timedelta(microseconds=1)
        upto = round((now - _TRANSIT).timestamp() * 1_000_000)
        times = upto - (rng.random(len(reach)) * reach * 0.9).astype(np.int64)
        new = make_orders(rng, times, _FIRST + number * size, 0)
        corrections = [_correct(rng, row, new, now - _TRANSIT) for row in old.to_pylist()]
        batches.append(
            Batch(now, pa.concat_tables([new, pa.Table.from_pylist(corrections, ORDERS)]))
        )
    return batches


def _correct(
    rng: np.random.Generator, order: dict[str, Any], others: pa.Table, at: datetime
) -> dict[str, Any]:
    """Return a later version: cancelled, at another time, or of another restaurant."""
    sort = rng.integers(3)
    changed: dict[str, Any] = {"status": "cancelled"}
    if sort == 1:
        changed = {"ordered_at": order["ordered_at"] - timedelta(minutes=int(rng.integers(5, 90)))}
    elif sort == 2:
        other = others.slice(int(rng.integers(others.num_rows)), 1).to_pylist()[0]
        changed = {name: other[name] for name in ("restaurant_id", "items", "currency_code")}
    return {**order, **changed, "updated_at": at, "op": "u"}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(type(value).__name__)
