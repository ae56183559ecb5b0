"""Gives streams that are equally far the same page of a model's changes, encoded once.

Used by the stream of a model. Streams share a page if their callers may see the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request

from livemart.serve.auth.callers import Caller
from livemart.serve.auth.seal import Seal
from livemart.serve.http.parts import part_of
from livemart.serve.live.readings import Readings
from livemart.serve.live.snapshot_json import event, to_json
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.written_rows import SLICE, SMALL, write_reset
from livemart.serve.shares.shares import shared_turn
from livemart.store.positions import Position
from livemart.store.reader import StoreReader
from livemart.store.served import Change

# Changes of a page; more of one snapshot are one page, too.
_PAGE = 2_000
# Rows of a reset: they are in memory all at once.
MOST_RESET = 50_000


@dataclass(frozen=True, slots=True)
class Page:
    """The changes behind the snapshot of the position `before`, for one kind of caller.

    It leads up to `upto`, a snapshot of `epoch`. In a reset, `slices` are all rows there, unless
    they are too many; else they are the events of `changes`, with `ids`.
    """

    ids: EventIds
    before: Position
    upto: Position
    epoch: str
    is_reset: bool
    changes: Sequence[Change]
    slices: Sequence[bytes]
    is_too_large: bool = False

    def behind(self, position: Position) -> Iterator[bytes]:
        """Yield the events behind a position, which may be in the middle of a snapshot."""
        if self.is_reset or not position.within:
            yield from self.slices
            return
        has = (position.within, position.position)
        rest = [change for change in self.changes if (change.snapshot_id, change.position) > has]
        yield from _slices(self.ids, self.before, rest)


def ids_of(request: Request, caller: Caller, name: str) -> EventIds:
    """Return the ids of the changes of a model to this caller."""
    return EventIds(part_of(request, Seal), name, caller.tenants)


async def read_page(request: Request, caller: Caller, name: str, position: Position) -> Page | None:
    """Return the changes after a snapshot; None if the model is not served any more."""
    reader, readings = part_of(request, StoreReader), part_of(request, Readings)
    after, mark, tenants = position.snapshot_id, position.mark, caller.tenants
    ids = ids_of(request, caller, name)

    def read() -> Page | None:
        """Return the changes; a reset is still without its rows."""
        try:
            stored = reader.changes(name, after, tenants, _PAGE, mark)
        except KeyError:
            return None
        before, upto = Position(after, stored.mark_before), Position(stored.upto, stored.mark)
        if stored.kind == "reset":
            return Page(ids, Position(after, mark), upto, stored.epoch, True, (), ())
        slices = tuple(_slices(ids, before, stored.changes))
        return Page(ids, before, upto, stored.epoch, False, stored.changes, slices)

    async def load() -> Page | None:
        async with shared_turn(request, caller, "changes") as held:
            page = await readings.run(read)
            if page is None or not page.is_reset:
                held.rows = len(page.changes) if page else 0
                return page
            small = min(SMALL, MOST_RESET)
            whole = await readings.read_anew(lambda view: write_reset(view, name, tenants, small))
            if whole.value is not None and not whole.value.slices:
                async with shared_turn(request, caller, "large", 1):
                    whole = await readings.read_aside(write_reset, name, tenants, MOST_RESET)
            if (reset := whole.value) is None:
                return None
            held.rows = reset.count
            return replace(
                page,
                upto=Position(whole.published.snapshot_id, reset.mark),
                epoch=whole.published.epoch,
                slices=reset.slices,
                is_too_large=not reset.slices,
            )

    return await readings.share(("changes", name, after, mark, tenants), load)


def _slices(ids: EventIds, before: Position, changes: Sequence[Change]) -> Iterator[bytes]:
    for start in range(0, len(changes), SLICE):
        yield b"".join(_encode(ids, before, change) for change in changes[start : start + SLICE])


def _encode(ids: EventIds, before: Position, change: Change) -> bytes:
    body = {"snapshot_id": change.snapshot_id, "op": change.op, "row": change.row}
    place = replace(before, within=change.snapshot_id, position=change.position)
    return event("change", to_json(body), ids.write(place))
