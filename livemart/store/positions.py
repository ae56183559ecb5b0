"""Describes how far a client of a stream is, and in which history.

Used by streams and by the reader of changes. Ids of snapshots begin again with another epoch or
another store, so a position has a mark beside its id.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from livemart.store.served import Published

# As long for every position: its length tells nothing.
_BYTES = struct.Struct(">4sQQi")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a client is: it has all of `snapshot_id`, and of `within` up to `position`.

    `mark` names the history of the snapshot; None is the history that the store holds.
    """

    snapshot_id: int
    mark: str | None
    within: int = 0
    position: int = -1

    def to_bytes(self) -> bytes:
        """Return the position as 24 bytes; the mark must be known."""
        mark = bytes.fromhex(self.mark or "")
        return _BYTES.pack(mark, self.snapshot_id, self.within, self.position)

    @classmethod
    def from_bytes(cls, packed: bytes) -> Position:
        """Return the position that `to_bytes` packed."""
        mark, snapshot_id, within, position = _BYTES.unpack(packed)
        return cls(snapshot_id, mark.hex(), within, position)


def mark_of(*parts: str) -> str:
    """Return eight characters that differ if these parts differ.

    In the changes of a model they are the epoch of the snapshot and the table of the rows: a model
    that is copied whole gets another table.

    >>> mark_of("one epoch", "served_sales") == mark_of("another", "served_sales")
    False
    """
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=4).hexdigest()


def state_id(published: Published) -> str:
    """Return the id of the event that reports the state at a publication."""
    mark = mark_of(published.epoch, published.published_at.isoformat())
    return f"{mark}-{published.snapshot_id}"
