"""Defines a message: a record of a log with its key, headers and time.

Yielded by kinds of record logs that have more than numbers and contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class Message(NamedTuple):
    """A record of a log. A part that a broker does not have is None, or left out.

    `content`: None says that the key has no value any more. `headers`: in order, a name may come
    twice. `timestamp_us`: when it was sent or stored, microseconds since 1970, UTC. `topic`: where
    it was sent to, a topic or a subject; `partition`: the number of it there.
    """

    offset: int
    content: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_us: int | None = None
    topic: str | None = None
    partition: int | None = None


# A log without more yields offset and content alone.
Record = tuple[int, bytes] | Message
