"""Which history a position belongs to: ids of snapshots begin anew with another epoch or store."""

from __future__ import annotations

import hashlib

from livemart.store.served import Published


def mark_of(*parts: str) -> str:
    """Return eight characters that tell apart what these parts tell apart.

    >>> mark_of("one epoch", "served_sales") == mark_of("another", "served_sales")
    False
    """
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=4).hexdigest()


def changes_mark(epoch: str, table_name: str) -> str:
    """Return the mark of a position in the changes of a model.

    Args:
        epoch: of the snapshot.
        table_name: of the model's rows; whoever copies them whole takes another name.
    """
    return mark_of(epoch, table_name)


def state_id(published: Published) -> str:
    """Return the id of the event that tells the state at a publication."""
    mark = mark_of(published.epoch, published.published_at.isoformat())
    return f"{mark}-{published.snapshot_id}"
