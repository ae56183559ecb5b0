"""Defines a message: a record of a log with its key, headers and time.

Yielded by kinds of record logs that have more than numbers and contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class Message(NamedTuple):
    """A record of a log. A part that a broker does not have is None, or left out."""

    offset: int
    content: bytes | None
    """None says that the key has no value any more."""
    key: bytes | None = None
    headers: Headers = ()
    """In order; a name may come twice."""
    timestamp_us: int | None = None
    """When it was sent or stored, microseconds since 1970, UTC."""
    topic: str | None = None
    """The topic or subject that it was sent to."""
    partition: int | None = None
    """The number of its partition there."""


# A log without more yields offset and content alone.
Record = tuple[int, bytes] | Message
