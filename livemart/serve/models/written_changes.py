"""Reads the changes of a model behind a position, and writes them as events for a stream.

Used in threads of the server and in side processes: so nothing here knows a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from livemart.serve.live.snapshot_json import event, snapshot_head, to_json
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.written_rows import MOST_BYTES, SMALL, json_row
from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition
from livemart.store.served import ChangePage, ServedModel
from livemart.store.snapshot_view import SnapshotView

# Changes of a page; more of one snapshot are one page, too.
PAGE = 2_000
# Events in one piece: a client is sent the next when it has taken this one.
SLICE = 200
# All rows of a stream that begins again are in memory at once.
MOST_RESET_BYTES = 4 * MOST_BYTES


@dataclass(frozen=True, slots=True)
class Followed:
    """The rows that a stream follows: of a model and some tenants, that fulfil all `conditions`.

    `ids` are those of its events; `kinds`: of the columns of the conditions, when they were read.
    """

    ids: EventIds
    conditions: tuple[ColumnCondition, ...] = ()
    kinds: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, ids: EventIds, model: ServedModel, conditions: tuple[ColumnCondition, ...]
    ) -> Followed:
        """Return the followed part of a model as it is now."""
        return cls(
            ids, conditions, tuple(model.kinds[condition.column] for condition in conditions)
        )

    def fits(self, model: ServedModel) -> bool:
        """Return True if the conditions mean the same in a model as when they were read."""
        pairs = zip(self.conditions, self.kinds, strict=True)
        return all(model.kinds.get(condition.column) == kind for condition, kind in pairs)


@dataclass(frozen=True, slots=True)
class Page:
    """The events behind a position, for one kind of caller: changes, or all rows in a reset.

    It leads up to `upto`, a snapshot of `epoch`. `slices` are its events, each some whole ones;
    `read`: changes or rows that were read for them; `sent`: changes among the events. A page that
    `is_too_large` has none.
    """

    upto: Position
    epoch: str
    is_reset: bool
    read: int
    sent: int
    slices: list[bytes]
    is_too_large: bool = False

    @property
    def size(self) -> int:
        """How many bytes the slices have."""
        return sum(map(len, self.slices))

    @property
    def is_dropped(self) -> bool:
        """True if there were slices, and none is left."""
        return not self.slices and (self.is_reset or self.sent > 0)


def write_page(
    view: SnapshotView, followed: Followed, after: Position, most: int, *, is_small: bool = False
) -> Page | None:
    """Return the changes behind a position; None if the model can no longer be followed.

    Args:
        view: the snapshot.
        followed: the rows.
        after: the position, of another history perhaps: then all rows are written.
        most: rows of a reset.
        is_small: write nothing that keeps others waiting; it is too large.
    """
    ids = followed.ids
    model = view.models().get(ids.model)
    if model is None or not followed.fits(model):
        return None
    changes = view.changes(
        ids.model,
        after,
        ids.tenants,
        PAGE,
        most=SMALL if is_small else None,
        conditions=followed.conditions,
    )
    if changes.kind == "reset":
        return _write_reset(view, model, followed, min(SMALL, most) if is_small else most)
    upto, is_too_large = Position(changes.upto, changes.mark), changes.kind == "many"
    slices = list(_slices(ids, Position(after.snapshot_id, changes.mark_before), changes))
    sent = len(changes.changes)
    return Page(upto, changes.epoch, False, changes.read, sent, slices, is_too_large)


def _slices(ids: EventIds, before: Position, page: ChangePage) -> Iterator[bytes]:
    events = (
        event(
            "change",
            to_json({"snapshot_id": change.snapshot_id, "op": change.op, "row": change.row}),
            ids.write(replace(before, within=change.snapshot_id, position=change.position)),
        )
        for change in page.changes
    )
    while some := b"".join(islice(events, SLICE)):
        yield some


def _write_reset(view: SnapshotView, model: ServedModel, followed: Followed, most: int) -> Page:
    """Return all rows of a model for who has none, `most` at most."""
    published = view.published
    count, size, slices = 0, 0, list[bytes]()
    opening = {"snapshot_id": published.snapshot_id, "op": "insert"}
    is_too_large = False
    all_rows = view.row_slices(
        model.name,
        size=SLICE,
        tenants=followed.ids.tenants,
        limit=most + 1,
        conditions=followed.conditions,
    )
    for rows in all_rows:
        count += len(rows)
        bodies = ({**opening, "row": json_row(model, row)} for row in rows)
        slices.append(b"".join(event("change", to_json(body), None) for body in bodies))
        size += len(slices[-1])
        if is_too_large := count > most or size > MOST_RESET_BYTES:
            slices.clear()
            break
    else:
        head = {**snapshot_head(published), "row_count": count}
        slices.insert(0, event("reset", to_json(head), None))
    upto = Position(published.snapshot_id, view.mark(model.name))
    return Page(upto, published.epoch, True, count, 0, slices, is_too_large)
