"""Pages of a model's changes: read and encoded once for all who are as far and may see the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from livemart.publish.reader import SnapshotView
from livemart.publish.served import Change
from livemart.serve.auth import Caller
from livemart.serve.bodies import snapshot_head
from livemart.serve.restaurant_bodies import to_json
from livemart.serve.rows import json_row
from livemart.serve.serving import Serving

# Changes of a page; more of one snapshot come all at once.
_PAGE = 2_000
# Rows of a reset: they are in memory all at once.
MOST_RESET = 50_000
# Rows of a reset in one piece.
_SLICE = 200


@dataclass(frozen=True, slots=True)
class Position:
    """How far a client is: it has all of `snapshot_id`, and of `within` up to `position`."""

    snapshot_id: int
    within: int = 0
    position: int = -1


@dataclass(frozen=True, slots=True)
class Page:
    """What comes behind the snapshot `after`, for one kind of caller.

    Of a reset, `slices` are all rows at `upto`, unless they are too many; else they are the events
    of `changes`.
    """

    after: int
    upto: int
    is_reset: bool
    changes: Sequence[Change]
    slices: Sequence[bytes]
    is_too_large: bool = False

    def behind(self, position: Position) -> bytes:
        """Return the events behind a position, which may be in the middle of a snapshot."""
        if not position.within:
            return b"".join(self.slices)
        has = (position.within, position.position)
        left = [each for each in self.changes if (each.snapshot_id, each.position) > has]
        return b"".join(_encode(self.after, change) for change in left)


async def read_page(serving: Serving, caller: Caller, name: str, after: int) -> Page | None:
    """Return what comes after a snapshot; None if the model is not served any more."""
    tenants = caller.tenants

    def read() -> Page | None:
        try:
            found = serving.reader.changes(name, after, tenants, _PAGE)
            if found.kind == "reset":
                with serving.reader.snapshot() as view:
                    return _whole(view, name, after, tenants)
        except KeyError:
            return None
        events = b"".join(_encode(after, change) for change in found.changes)
        return Page(after, found.upto, False, found.changes, (events,))

    async def fly() -> Page | None:
        return await serving.answers.run(read)

    return await serving.answers.share(("changes", name, after, tenants), fly)


def event(kind: str, data: bytes, event_id: int | str | None) -> bytes:
    """Return a server-sent event; `data` is JSON, which has its line ends escaped."""
    opening = b"" if event_id is None else f"id: {event_id}\n".encode()
    return opening + f"event: {kind}\ndata: ".encode() + data + b"\n\n"


def _whole(view: SnapshotView, name: str, after: int, tenants: frozenset[str] | None) -> Page:
    rows = view.rows(name, tenants=tenants, limit=MOST_RESET + 1)
    if len(rows) > MOST_RESET:
        return Page(after, view.published.snapshot_id, True, (), (), is_too_large=True)
    head = {**snapshot_head(view.published), "row_count": len(rows)}
    slices = [event("reset", to_json(head), None)]
    snapshot_id = view.published.snapshot_id
    for start in range(0, len(rows), _SLICE):
        bodies = (
            {"snapshot_id": snapshot_id, "op": "insert", "row": json_row(row)}
            for row in rows[start : start + _SLICE]
        )
        slices.append(b"".join(event("change", to_json(body), None) for body in bodies))
    return Page(after, snapshot_id, True, (), slices)


def _encode(after: int, change: Change) -> bytes:
    body = {"snapshot_id": change.snapshot_id, "op": change.op, "row": change.row}
    place = f"{after}.{change.snapshot_id}.{change.position}"
    return event("change", to_json(body), place)
