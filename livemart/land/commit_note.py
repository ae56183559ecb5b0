"""Stores the record counts and the drift of one source in one micro-batch in its commit.

Used by landing: a replay reads them back from the commit instead of landing the records again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.state.counts import Counts
from livemart.state.drift import Drift, DriftedField


@dataclass(frozen=True, slots=True)
class Landed:
    """The records of one source in one batch. `newest_event_time`: of those it took, UTC."""

    counts: Counts
    newest_event_time: datetime | None = None
    drift: Drift = ()


def noted(tag: Tag, landed: Landed) -> Tag:
    """Return the tag with a note."""
    note = {"counts": json.dumps(asdict(landed.counts))}
    if landed.newest_event_time is not None:
        note["newest_event_time"] = landed.newest_event_time.isoformat()
    if landed.drift:
        note["drift"] = json.dumps([asdict(field) for field in landed.drift])
    return tag.with_metadata(note)


def read_note(warehouse: Warehouse, relation: str, batch_id: int, before: int) -> Landed:
    """Return what a source committed in a batch; its table had version `before` until then."""
    for version in range(warehouse.version(relation), before, -1):
        note = warehouse.metadata_of(relation, version)
        if note.get("batch_id") != str(batch_id) or "counts" not in note:
            continue
        counts = Counts(**json.loads(note["counts"]))
        newest = note.get("newest_event_time")
        drift = tuple(map(DriftedField.of, json.loads(note.get("drift", "[]"))))
        moment = datetime.fromisoformat(newest).astimezone(UTC) if newest else None
        return Landed(counts, moment, drift)
    return Landed(Counts())
