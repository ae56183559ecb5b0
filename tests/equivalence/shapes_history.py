"""Random histories for the sources of `tests/projects/shapes`: what a refresh must survive.

Rows come, change their partner, time or value, go, come back, repeat, arrive out of order, tie, and
are NULL wherever a column may be. Values are few, so that groups empty and ties are common.
Doubles are quarters: their sums do not depend on the order of rows, so results compare exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

STARTED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEYS: Mapping[str, str] = {
    "sales": "sale_id",
    "refunds": "refund_id",
    "shops": "shop_id",
    "products": "product_id",
}
SOURCES = (*KEYS, "visits")

_SHOPS = ("s1", "s2", "s3", "s4")
_PRODUCTS = ("p1", "p2", "p3", "food")
_CUSTOMERS = ("c1", "c2", "c3")
# Texts whose order is another one in UTF-16, or is decided behind the 32nd character.
_TEXTS = ("\uff5e", "\U00020bb7", "x" * 40, "x" * 40 + "a")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries of one micro-batch: JSON records by source, and the clock after it, UTC."""

    as_of: datetime
    records: Mapping[str, list[Record]]


@dataclass
class _World:
    """The newest version of each live key, as far as the generator needs it."""

    chance: random.Random
    now: datetime = STARTED_AT
    version: int = 0
    live: dict[str, dict[str, Record]] = field(default_factory=lambda: {name: {} for name in KEYS})
    dead: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in KEYS})
    made: int = 0


def history(
    seed: int, batches: int = 6, changes: int = 14, started_at: datetime = STARTED_AT
) -> Iterator[Batch]:
    """Yield the batches of one history; the same seed gives the same history.

    Args:
        seed: of the random numbers.
        batches: how many; the first one is larger and fills every source.
        changes: about how many records a later batch holds. Some batches hold none.
        started_at: the clock of the first batch, UTC.

    Yields:
        Batches whose `as_of` never goes back; it may stay or jump by hours.
    """
    world = _World(random.Random(seed), started_at)
    yield Batch(world.now, _first_records(world))
    for _ in range(batches - 1):
        world.now += timedelta(minutes=world.chance.choice([0, 5, 5, 10, 30, 60, 240]))
        count = world.chance.choice([0, 1, changes // 2, changes, changes, 2 * changes])
        records: dict[str, list[Record]] = {name: [] for name in SOURCES}
        for _ in range(count):
            source = world.chance.choices(SOURCES, weights=[9, 4, 2, 2, 4])[0]
            records[source] += _change(world, source)
        for delivered in records.values():
            # Whatever order records arrive in, the newest version of a key wins.
            world.chance.shuffle(delivered)
        yield Batch(world.now, records)


def live_rows(batches: list[Batch]) -> dict[str, list[Record]]:
    """Return what the sources hold after these batches: the landing contract in ten lines.

    Keyed sources: the newest version per key, deletes removed. `visits`: every record.
    """
    visits = [record for batch in batches for record in batch.records["visits"]]
    return {**newest_rows(batches, KEYS), "visits": visits}


def newest_rows(batches: Sequence[Batch], keys: Mapping[str, str]) -> dict[str, list[Record]]:
    """Return the newest version of each key of some sources, deletes removed."""
    rows = {}
    for source, key in keys.items():
        newest: dict[str, Record] = {}
        for batch in batches:
            for record in batch.records[source]:
                known = newest.get(record[key])
                if known is None or record["version"] > known["version"]:
                    newest[record[key]] = record
        rows[source] = [record for record in newest.values() if record["op"] != "d"]
    return rows


def _first_records(world: _World) -> dict[str, list[Record]]:
    records: dict[str, list[Record]] = {name: [] for name in SOURCES}
    for shop_id in _SHOPS[:3]:
        records["shops"].append(_write(world, "shops", shop_id))
    for product_id in _PRODUCTS[:3]:
        records["products"].append(_write(world, "products", product_id))
    for _ in range(24):
        records["sales"].append(_write(world, "sales", _new_key(world, "sale")))
    for _ in range(8):
        records["refunds"].append(_write(world, "refunds", _new_key(world, "refund")))
    for _ in range(16):
        records["visits"].append(_visit(world))
    return records


def _change(world: _World, source: str) -> list[Record]:
    """Return the records of one change: usually one, more where something repeats."""
    chance = world.chance
    if source == "visits":
        visit = _visit(world)
        return [visit] * chance.choice([1, 1, 1, 2, 3])
    live = world.live[source]
    kind = chance.choices(
        ["insert", "update", "touch", "delete", "revive", "repeat", "stale"],
        weights=[5, 5, 1, 3, 1, 1, 1],
    )[0]
    if kind == "revive" and world.dead[source]:
        return [_write(world, source, chance.choice(world.dead[source]))]
    if not live or kind in ("insert", "revive"):
        return [_write(world, source, _insert_key(world, source))]

    key = chance.choice(sorted(live))
    if kind == "update":
        return [_write(world, source, key)]
    if kind == "touch":
        # A newer version with the same values is no change for any model that leaves it out.
        return [_remember(world, source, {**live[key], "version": _next_version(world)})]
    if kind == "repeat":
        return [live[key], dict(live[key])]
    if kind == "stale":
        stale = {**_record(world, source, key), "version": live[key]["version"] - 1, "op": "u"}
        return [stale] if stale["version"] > 0 else []
    deleted = {**live.pop(key), "version": _next_version(world), "op": "d"}
    world.dead[source].append(key)
    return [deleted]


def _insert_key(world: _World, source: str) -> str:
    if source == "shops":
        return world.chance.choice(_SHOPS)
    if source == "products":
        return world.chance.choice(_PRODUCTS)
    return _new_key(world, source.removesuffix("s"))


def _new_key(world: _World, prefix: str) -> str:
    world.made += 1
    return f"{prefix}{world.made}"


def _next_version(world: _World) -> int:
    # In steps, so that an older version can be delivered after a newer one.
    world.version += 10
    return world.version


def _write(world: _World, source: str, key: str) -> Record:
    """Return a new version of `key`; half of the columns of a live row stay as they were."""
    record = _record(world, source, key)
    if old := world.live[source].get(key):
        record |= {name: value for name, value in old.items() if world.chance.random() < 0.5}
    record |= {KEYS[source]: key, "version": _next_version(world), "op": "u"}
    return _remember(world, source, record)


def _remember(world: _World, source: str, record: Record) -> Record:
    key = record[KEYS[source]]
    world.live[source][key] = record
    if key in world.dead[source]:
        world.dead[source].remove(key)
    return record


def _record(world: _World, source: str, key: str) -> Record:
    """Return random values for every column but the version."""
    chance = world.chance
    record: Record = {KEYS[source]: key, "op": "u"}
    if source == "shops":
        return record | {
            "shop_name": chance.choice(["Joe's", *_TEXTS, None]),
            "region": chance.choice(["north", "north ", "", None]),
            "commission": chance.choice(["0.0500", "0.1234", "0.0500", None]),
        }
    if source == "products":
        return record | {
            "category": chance.choice(["food", "\U00020bb7", "p1", None]),
            "list_price": chance.choice(["1.00", "9.99", "20.00", None]),
        }
    if source == "refunds":
        sales = [*sorted(world.live["sales"]), "sale0"]
        return record | {
            # A NULL here empties every NOT IN.
            "sale_id": None if chance.random() < 0.04 else chance.choice(sales),
            "refund": chance.choice(["1.00", "2.50", "-1.00", None]),
            "refunded_at": _time(world),
        }
    return record | {
        "shop_id": chance.choice([*_SHOPS, *_SHOPS, None]),
        "product_id": chance.choice([*_PRODUCTS, *_PRODUCTS, None]),
        "customer_id": chance.choice([*_CUSTOMERS, *_CUSTOMERS, None]),
        "quantity": chance.choice([-1, 0, 1, 1, 2, 3, 3, None]),
        "amount": chance.choice(["0.00", "5.00", "9.99", "9.99", "15.01", "40.00", "-3.50", None]),
        "weight": chance.choice([0.25, 0.5, 1.75, -2.0, 0.0, None]),
        "tags": chance.choice([None, [], ["new"], ["new", "new"], ["old", None], ["a", "b", "c"]]),
        "lines": chance.choice([None, [], [_line(chance)], [_line(chance), _line(chance)]]),
        "sold_at": _time(world),
    }


def _line(chance: random.Random) -> Record:
    return {
        "product_id": chance.choice([*_PRODUCTS, None]),
        "quantity": chance.choice([1, 2, None]),
    }


def _visit(world: _World) -> Record:
    chance = world.chance
    return {
        "shop_id": chance.choice([*_SHOPS, None]),
        "customer_id": chance.choice([*_CUSTOMERS, None]),
        "seconds": chance.choice([0, 5, 11, 60, 60, None]),
        "visited_at": _time(world),
    }


def _time(world: _World) -> str | None:
    """Return a time up to 14 hours before the clock, often on a boundary, often a tie, or None."""
    chance = world.chance
    if chance.random() < 0.06:
        return None
    minutes = 5 * chance.randint(0, chance.choice([6, 30, 168]))
    shift = timedelta(microseconds=chance.choice([0, 0, 0, -1, 1, 150_000_000]))
    return f"{world.now - timedelta(minutes=minutes) + shift:%Y-%m-%dT%H:%M:%S.%fZ}"
