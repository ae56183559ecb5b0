"""Records by source: of one pass together, and as the log keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from livemart.delta.warehouse import Warehouse
from livemart.land.landing import Counts, LandedBatch
from livemart.state.snapshots import Landed


def merge_batches(batches: list[LandedBatch]) -> LandedBatch:
    """Return the landed batches of one pass as one: the last id and versions, all counts."""
    counts: dict[str, Counts] = {}
    for batch in batches:
        for relation, found in batch.counts.items():
            counts[relation] = _add(counts[relation], found) if relation in counts else found
    times = [batch.newest_event_time for batch in batches if batch.newest_event_time is not None]
    return replace(
        batches[-1],
        counts=counts,
        newest_event_time=max(times, default=None),
        has_records=any(batch.has_records for batch in batches),
    )


def _add(one: Counts, other: Counts) -> Counts:
    return Counts(
        produced=one.produced + other.produced,
        landed=one.landed + other.landed,
        superseded=one.superseded + other.superseded,
        dead_letters=one.dead_letters + other.dead_letters,
    )


def count_landed(
    warehouse: Warehouse, relations: Iterable[str], counts: Mapping[str, Counts]
) -> dict[str, Landed]:
    """Return what the log keeps of each landed table, without records as well."""
    landed: dict[str, Landed] = {}
    for relation in relations:
        found = counts.get(relation, Counts(0, 0, 0, 0))
        landed[relation] = Landed(
            produced=found.produced,
            landed=found.landed,
            superseded=found.superseded,
            dead_letters=found.dead_letters,
            table_id=warehouse.table_id(relation),
        )
    return landed
