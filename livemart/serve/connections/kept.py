"""Decides which connections a server keeps when more come than it can hold.

Used by the protocol of the server. A client that asks is worth more than a silent one: the
connection that has been silent for longest is closed in favour of a new one. If all are busy, a new
one is held on a reserve, in which only questions about the server's health are answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.origin import Network, is_within, origin_of
from livemart.serve.http.rare_log import RareLog

_KEPT_FILES = 500
_RESERVE = 64
# So many connections are ended before others have their turn.
_AT_ONCE = 4


class Admission(Enum):
    """How a new connection is taken in."""

    OPEN = "open"
    RESERVE = "reserve"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be.

    `most`: in all; `reserve`: beyond these, for questions about health; `of_address`: from one
    address, unless it is of `proxies`, which bring the connections of many.
    """

    most: int
    reserve: int
    of_address: int
    proxies: tuple[Network, ...] = ()

    @classmethod
    def within(
        cls, open_files: int, of_address: int, proxies: tuple[Network, ...] = ()
    ) -> ConnectionLimits:
        """Return the limits of a process that may have so many files open.

        Half of them, at most 500, are kept for the store, the engine, files and the reserve.

        >>> ConnectionLimits.within(6_000, 1_000)
        ConnectionLimits(most=5500, reserve=64, of_address=1000, proxies=())
        """
        kept_files = min(_KEPT_FILES, open_files // 2)
        most = open_files - kept_files
        return cls(
            most, min(_RESERVE, kept_files // 4), max(1, min(of_address, most // 2)), proxies
        )


class OpenConnection(Protocol):
    """A connection that has a deadline, and can be ended."""

    deadline: float

    def expire(self, now: float) -> None:
        """End, or take another deadline: this one has passed."""

    def cut_off(self) -> None:
        """End at once."""


class Connections:
    """The open connections of a server, and which of them are silent.

    Args:
        limits: how many there may be.
        measurements: where they are counted.
        log: tells, rarely, of those that were ended.
        held: where bytes are counted that clients have not taken yet.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        measurements: Measurements,
        log: RareLog | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self.limits = limits
        self._measurements = measurements
        self._log = log or RareLog()
        self._held = held or HeldBytes()
        self._origins: dict[OpenConnection, str] = {}
        self._of_origin: Counter[str] = Counter()
        # Those that have been silent for longest come first.
        self._silent: dict[OpenConnection, None] = {}
        self._silent_of: dict[str, dict[OpenConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._origins)

    def admit(self, connection: OpenConnection, address: str) -> Admission:
        """Take a new connection in, as a silent one; end another where there are too many.

        One that is refused is not counted: it is to end by itself, at once.
        """
        limits, origin = self.limits, origin_of(address)
        is_full = self._of_origin[origin] >= limits.of_address
        is_full = is_full and not is_within(address, limits.proxies)
        if is_full and not self._end_silent(self._silent_of.get(origin, {}), "silent"):
            return self._refuse("address_full")
        admission = Admission.OPEN
        if len(self) >= limits.most and not self._end_silent(self._silent, "silent"):
            if len(self) >= limits.most + limits.reserve:
                return self._refuse("server_full")
            admission = Admission.RESERVE
        self._origins[connection] = origin
        self._of_origin[origin] += 1
        self.note_silent(connection)
        self._measurements.connections.set(len(self))
        return admission

    def note_silent(self, connection: OpenConnection) -> None:
        """Note that a connection waits for a request of its client from now on."""
        if (origin := self._origins.get(connection)) is not None:
            self._silent[connection] = None
            self._silent_of.setdefault(origin, {})[connection] = None

    def note_busy(self, connection: OpenConnection) -> None:
        """Note that a connection has a request."""
        self._silent.pop(connection, None)
        origin = self._origins.get(connection, "")
        if (silent := self._silent_of.get(origin)) is not None:
            silent.pop(connection, None)
            if not silent:
                del self._silent_of[origin]

    def note_untaken(self, connection: OpenConnection, owner: str | None, size: int) -> None:
        """Note that so many bytes wait until the client takes them; end another for want of memory.

        They are of the caller `owner`; where that is not known, of the address.
        """
        name = owner or f"address {self._origins.get(connection, '')}"

        def end() -> None:
            self.note_ended("memory_full")
            connection.cut_off()

        self._held.hold(id(connection), name, size, end)

    def note_taken(self, connection: OpenConnection) -> None:
        """Note that the client has taken almost all of them."""
        self._held.release(id(connection))

    def leave(self, connection: OpenConnection) -> None:
        """Forget a connection that has ended."""
        self._held.release(id(connection))
        self.note_busy(connection)
        if (origin := self._origins.pop(connection, None)) is not None:
            self._of_origin[origin] -= 1
            if not self._of_origin[origin]:
                del self._of_origin[origin]
            self._measurements.connections.set(len(self))

    async def expire(self, now: float) -> None:
        """Let each connection whose deadline has passed decide on its end.

        A few at a time, between which requests are answered: thousands may have come at once.
        """
        late = [connection for connection in self._origins if connection.deadline <= now]
        for few in (late[at : at + _AT_ONCE] for at in range(0, len(late), _AT_ONCE)):
            for connection in few:
                # It may have left meanwhile, or have another deadline.
                if connection in self._origins and connection.deadline <= now:
                    connection.expire(now)
            await asyncio.sleep(0)

    def make_room(self) -> None:
        """End the connection that has been silent for longest: files cannot be opened any more."""
        self._end_silent(self._silent, "no_files")

    def note_ended(self, reason: str) -> None:
        """Count a connection that was ended or refused, and tell of it."""
        self._measurements.ended(reason)
        self._log.tell("connection_ended", reason, reason=reason, connections=len(self))

    def _end_silent(self, silent: dict[OpenConnection, None], reason: str) -> bool:
        connection = next(iter(silent), None)
        if connection is None:
            return False
        self.leave(connection)
        connection.cut_off()
        self.note_ended(reason)
        return True

    def _refuse(self, reason: str) -> Admission:
        self.note_ended(reason)
        return Admission.REFUSED
