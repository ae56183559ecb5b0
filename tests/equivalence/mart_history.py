"""Random histories of the reference mart's sources: many trials side by side, apart by their keys.

Every id carries its trial, and no model of the mart lets restaurants influence each other. So one
run of the mart holds an independent history for each trial.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.project_run import ProjectRun

Record = dict[str, Any]

START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
_CURRENCIES = ("EUR", "EUR", "EUR", "USD")
_STATUSES = ("placed", "placed", "delivered", "cancelled")


@dataclass(frozen=True, slots=True)
class MartBatch:
    """Records by source that arrive together, and the wall clock then (UTC)."""

    records: dict[str, list[Record]]
    now: datetime

    def arrive(self, run: ProjectRun) -> None:
        """Deliver the records, and set the clock."""
        run.now = self.now
        for source, records in self.records.items():
            if records:
                run.deliver(source, *records)


@dataclass(slots=True)
class _Trial:
    name: str
    rng: random.Random
    orders: dict[str, Record] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    sequence: int = 0
    number: int = 0

    def restaurant(self) -> str:
        return f"{self.name}-r{self.rng.choice('123')}"

    def stamp(self, now: datetime) -> str:
        """Return a sequence value that no other record of the trial has."""
        self.sequence += 1
        return (now + timedelta(microseconds=self.sequence)).isoformat()


def mart_history(seed: int, trials: int, batches: int) -> Iterator[MartBatch]:
    """Yield the batches of a seeded history; the first one holds what was there before."""
    found = [_Trial(f"t{number}", random.Random(f"{seed}/{number}")) for number in range(trials)]
    rng = random.Random(seed)
    now = START
    for batch in range(batches):
        records: dict[str, list[Record]] = {"orders": [], "restaurants": [], "dishes": []}
        for trial in found:
            _restaurants(trial, records["restaurants"], now, is_first=batch == 0)
            _dishes(trial, records["dishes"], now, is_first=batch == 0)
            # Some trials are silent: only the clock moves for them.
            if batch == 0 or trial.rng.random() < 0.8:
                size = 14 if batch == 0 else trial.rng.randint(1, 6)
                for _ in range(size):
                    records["orders"].extend(_order_records(trial, now))
        for of_source in records.values():
            rng.shuffle(of_source)
        yield MartBatch(records, now)
        # Mostly one pane further; now and then an hour or a day, so that windows empty.
        now += timedelta(minutes=rng.choice([5, 5, 5, 0, 60, 60 * 24]))


def _order_records(trial: _Trial, now: datetime) -> list[Record]:
    rng = trial.rng
    choice = rng.random()
    if choice < 0.6 or not trial.orders:
        trial.number += 1
        record = _order(trial, f"{trial.name}-o{trial.number}", now)
    else:
        known = trial.orders[rng.choice(sorted(trial.orders))]
        record = dict(known, updated_at=trial.stamp(now))
        if choice < 0.70:
            record["status"] = "cancelled"
        elif choice < 0.78:
            record["ordered_at"] = _ordered_at(rng, now)
        elif choice < 0.83:
            record["restaurant_id"] = trial.restaurant()
        elif choice < 0.88:
            record["items"] = _items(trial)
        elif choice < 0.94:
            record["op"] = "d"
        else:
            # A version that is older than the one that is there: it must not win.
            older = datetime.fromisoformat(known["updated_at"]) - timedelta(hours=1)
            record = _order(trial, known["order_id"], now)
            record["updated_at"] = (older + timedelta(microseconds=trial.sequence)).isoformat()
            return [record]
    trial.orders[record["order_id"]] = dict(record, op="u")
    repeats = 2 if rng.random() < 0.1 else 1
    return [record] * repeats


def _order(trial: _Trial, order_id: str, now: datetime) -> Record:
    rng = trial.rng
    return {
        "order_id": order_id,
        "restaurant_id": None if rng.random() < 0.03 else trial.restaurant(),
        "customer_id": None if rng.random() < 0.1 else f"{trial.name}-c{rng.randint(1, 5)}",
        "ordered_at": None if rng.random() < 0.03 else _ordered_at(rng, now),
        "status": rng.choice(_STATUSES),
        "currency_code": rng.choice(_CURRENCIES),
        "items": _items(trial),
        "updated_at": trial.stamp(now),
        "op": "c",
    }


def _ordered_at(rng: random.Random, now: datetime) -> str:
    minutes = rng.choice([1, 2, 4, 20, 58, 62, 60 * 23, 60 * 25, 60 * 47, 60 * 167, 60 * 169])
    instant = now - timedelta(minutes=minutes, seconds=rng.randint(0, 59))
    edge = rng.random()
    if edge < 0.2:
        # On the very edge of a pane: the first instant of one, or the last of the one before.
        instant = instant.replace(minute=instant.minute // 5 * 5, second=0, microsecond=0)
        if edge < 0.1:
            instant -= timedelta(microseconds=1)
    return instant.isoformat()


def _items(trial: _Trial) -> list[Record] | None:
    rng = trial.rng
    if rng.random() < 0.05:
        return None
    return [
        {
            "dish_id": f"{trial.name}-d{rng.choice('12345')}",
            "quantity": rng.randint(1, 3),
            "unit_price": rng.choice([5.0, 5.0, 7.5, 0.1]),
        }
        for _ in range(rng.randint(0, 3))
    ]


def _restaurants(trial: _Trial, into: list[Record], now: datetime, *, is_first: bool) -> None:
    rng = trial.rng
    for number in "123":
        if is_first and number == "3":
            continue
        if is_first or rng.random() < 0.07:
            into.append(
                {
                    "restaurant_id": f"{trial.name}-r{number}",
                    "restaurant_name": f"{trial.name} {number} {rng.randint(1, 99)}",
                    "time_zone": rng.choice(["Europe/Lisbon", "Asia/Tokyo"]),
                    "currency_code": rng.choice(_CURRENCIES),
                    "updated_at": trial.stamp(now),
                    "op": "d" if not is_first and rng.random() < 0.2 else "u",
                }
            )


def _dishes(trial: _Trial, into: list[Record], now: datetime, *, is_first: bool) -> None:
    rng = trial.rng
    for number in "1234":
        if (is_first and number != "4") or rng.random() < 0.07:
            into.append(
                {
                    "dish_id": f"{trial.name}-d{number}",
                    "restaurant_id": f"{trial.name}-r1",
                    "dish_name": f"Dish {rng.randint(1, 99)}",
                    "updated_at": trial.stamp(now),
                    "op": "d" if not is_first and rng.random() < 0.2 else "u",
                }
            )
