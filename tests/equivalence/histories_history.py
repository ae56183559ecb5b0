"""Random histories for the sources of `tests/projects/histories`, with ties or without any.

Changes come late, between two others, move to another member, are corrected and deleted; members
vanish. Times are few, so that many tie; without ties each time occurs once, and none is NULL.
Texts, amounts and times are those that engines order, cut or compare differently.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.equivalence.shapes_history import STARTED_AT, Batch

KEYS = {
    "changes": "change_id",
    "plans": "plan_id",
    "charges": "charge_id",
    "readings": "reading_id",
    "cities": "city",
}
_MEMBERS = ("m1", "m2", "m3", "m4", "m5")
_TIMES = 14
# Before the Gregorian calendar, before zones, before the epoch, behind the nanoseconds.
_FAR_TIMES = (
    datetime(1582, 10, 4, 23, 59, 59, tzinfo=UTC),
    datetime(1883, 11, 18, 16, 59, 59, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2262, 4, 11, 23, 47, 16, 854_776, tzinfo=UTC),
)
# In UTF-16 the first is greater than the second; the others differ behind the 32nd character.
_TIERS = ("\uff5e", "\U00020bb7", "x" * 40, "x" * 40 + "a")
_CITIES = ("A", "a", "a\u0308", "ä")
_AMOUNTS = ("-99999999.99", "-0.01", "0.00", "2.50", "99999999.99")

Record = dict[str, Any]


@dataclass
class _World:
    chance: random.Random
    has_ties: bool
    live: dict[str, dict[str, Record]] = field(default_factory=lambda: {name: {} for name in KEYS})
    made: int = 0

    def number(self) -> int:
        self.made += 1
        return self.made


def history(seed: int, batches: int, *, has_ties: bool) -> Iterator[Batch]:
    """Yield the batches of one history; the same arguments give the same history."""
    world = _World(random.Random(seed), has_ties)
    for number in range(batches):
        records: dict[str, list[Record]] = {name: [] for name in KEYS}
        if number == 0:
            for plan in ("p1", "p2", "p3"):
                records["plans"].append(_written(world, "plans", plan))
            for city in _CITIES[:3]:
                records["cities"].append(_written(world, "cities", city))
        for _ in range(24 if number == 0 else world.chance.choice([1, 3, 6])):
            source = world.chance.choices(list(KEYS), [8, 1, 4, 4, 1])[0]
            records[source].append(_change(world, source))
        if number == batches - 2:
            # A member that vanishes with all that is known of it.
            for key, record in list(world.live["changes"].items()):
                if record["member_id"] == "m1":
                    records["changes"].append(_deleted(world, "changes", key))
        yield Batch(STARTED_AT + timedelta(hours=number), records)


def _change(world: _World, source: str) -> Record:
    live, chance = world.live[source], world.chance
    kind = chance.choices(["insert", "update", "delete"], [5, 4, 2])[0]
    if source in ("plans", "cities"):
        return _written(world, source, chance.choice(sorted(live)))
    if not live or kind == "insert":
        return _written(world, source, f"{source[:2]}{world.number()}")
    key = chance.choice(sorted(live))
    return _written(world, source, key) if kind == "update" else _deleted(world, source, key)


def _deleted(world: _World, source: str, key: str) -> Record:
    return {**world.live[source].pop(key), "version": world.number(), "op": "d"}


def _written(world: _World, source: str, key: str) -> Record:
    """Return a new version of a key; half of what it held stays."""
    record = _record(world, source)
    before = world.live[source].get(key, {})
    record |= {name: value for name, value in before.items() if world.chance.random() < 0.5}
    record |= {KEYS[source]: key, "version": world.number(), "op": "u"}
    world.live[source][key] = record
    return record


def _record(world: _World, source: str) -> Record:
    chance = world.chance
    if source == "plans":
        return {"plan_name": chance.choice(["ß", "SS"]), "price": chance.choice(["5", "9.5"])}
    if source == "cities":
        return {"region": chance.choice(["", " ", None])}
    if source == "readings":
        level = chance.choice([None, None, 1, 2, 3])
        return {"meter_id": chance.choice("xyz"), "level": level, "read_at": _time(world)}
    if source == "charges":
        amount = chance.choice(_AMOUNTS)
        return {"member_id": chance.choice(_MEMBERS), "amount": amount, "charged_at": _time(world)}
    return {
        "member_id": chance.choice([*_MEMBERS, None])
        if world.has_ties
        else chance.choice(_MEMBERS),
        "tier": chance.choice(_TIERS),
        "city": chance.choice([*_CITIES, None]),
        "plan_id": chance.choice(["p1", "p2", "p3", None]),
        "changed_at": _time(world),
    }


def _time(world: _World) -> str | None:
    if world.has_ties and world.chance.random() < 0.06:
        return None
    near = STARTED_AT - timedelta(hours=6 * world.chance.randrange(_TIMES))
    time = world.chance.choice(_FAR_TIMES) if world.chance.random() < 0.15 else near
    if not world.has_ties:
        time += timedelta(milliseconds=10 * world.number())
    return time.isoformat()
