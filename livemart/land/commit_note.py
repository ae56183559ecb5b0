"""Stores the record counts and the drift of one source in one micro-batch in its commit.

Used by landing: a replay reads them back from the commit instead of landing the records again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.state.counts import Counts
from livemart.state.drift import Drift


@dataclass(frozen=True, slots=True)
class Landed:
    """The records of one source in one batch. `newest_event_time`: of those it took, UTC."""

    counts: Counts
    newest_event_time: datetime | None = None
    drift: Drift = ()


_LANDED, _NOTE = TypeAdapter(Landed), "landed"


def noted(tag: Tag, landed: Landed) -> Tag:
    """Return the tag with a note."""
    return tag.with_metadata({_NOTE: _LANDED.dump_json(landed).decode()})


def read_note(warehouse: Warehouse, relation: str, batch_id: int, before: int) -> Landed:
    """Return the note of a source's commit in a batch; before it the table had version `before`."""
    for version in range(warehouse.version(relation), before, -1):
        note = warehouse.metadata_of(relation, version)
        if note.get("batch_id") == str(batch_id) and _NOTE in note:
            return _LANDED.validate_json(note[_NOTE])
    return Landed(Counts())
