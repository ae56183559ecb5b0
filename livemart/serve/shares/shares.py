"""Holds each caller to a share of the server: pulls at once, pulls that wait, rows a minute.

Used by the routers whose answers are read from the store or the warehouse. Health and measurements
are not among them. The share is a token's; of who needs none, the address's.

Each caller has a few pulls under way, and the rest of theirs wait in line. So one who asks for much
is served as often as one who asks for little, and keeps only itself waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from fastapi import Depends
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from livemart.serve.auth.callers import Caller, CallerOf
from livemart.serve.connections.protocol import OWNER
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.origin import origin_of
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.quota import Quota
from livemart.settings import Settings

# Figures of restaurants are read many in one query, and are asked for many at once.
_FIGURES_AT_ONCE = 20
# A browser has six connections to a server: two pulls are under way, and so many wait.
_FEW_WAITING = 4
_OTHERS_WITHIN_S = 1.0
# Each turn of a caller who crowds the server is followed by a rest that is so many times as long.
_RESTS = 2.0
_LONGEST_REST_S = 0.25
_PULL = "pull"
_STATE = "share"
_INGEST = "ingest"
# So often who waits is looked after: it may have left.
_LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class _Held:
    """A request's part of its caller's share. `rows`: how many were read for it."""

    shares: Shares
    owner: str
    line: tuple[str, str]
    at_once: int
    began: float
    rows: int = 0
    is_over: bool = False

    def end(self) -> None:
        """Give the turn back, and count the rows; once."""
        if not self.is_over:
            self.is_over = True
            self.shares.turns.give_back(self.line, self.shares.rest_s(self))
            if self.rows:
                self.shares.rows.take(self.owner, self.rows)


class Shares:
    """The shares of all callers of one server.

    Args:
        settings: `caller_pulls`, `caller_waiting_pulls` and `caller_rows`.
        measurements: where pulls that wait and are refused are counted.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        settings: Settings,
        measurements: Measurements,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.turns = Turns(settings.caller_waiting_pulls)
        self.rows = Quota(settings.caller_rows)
        self._at_once = settings.caller_pulls
        self._measurements = measurements
        self._clock = clock
        # The callers who asked last, with the time: the newest one, and the newest of the others.
        self._newest, self._other = ("", -inf), ("", -inf)
        measurements.waiting_pulls.set_function(lambda: self.turns.waiting)

    async def hold(self, request: Request, caller: Caller, kind: str, at_once: int = 0) -> _Held:
        """Return the held part of the caller's share, when it is its turn; `end` gives it back.

        Raises:
            ProblemError: TOO_MANY_AT_ONCE, TOO_MANY_ROWS.
            ClientDisconnect: no client waits for the answer any more.
        """
        held = self._held(request, caller, kind, at_once)
        if kind != _INGEST:
            self._require_rows(held)
        try:
            await self.turns.take(held.line, held.at_once, request.is_disconnected)
        except QueueFullError:
            detail = (
                f"{held.at_once} of yours are running, and no more may wait; send fewer at once"
            )
            problem = ProblemError("TOO_MANY_AT_ONCE", detail)
            raise self._refuse(held, problem, "at_once", 1.0) from None
        except WaiterLeftError:
            raise ClientDisconnect from None
        held.began = self._clock()
        return held

    def is_crowding(self, held: _Held) -> bool:
        """Return True if many pulls of a caller wait while others ask."""
        if self.turns.waiting_of(held.line) <= _FEW_WAITING:
            return False
        _, other_at = self._newest if self._newest[0] != held.owner else self._other
        return self._clock() - other_at <= _OTHERS_WITHIN_S

    def rest_s(self, held: _Held) -> float:
        """Return how long the next pull of a caller waits behind one that is over."""
        if held.line[0] != _PULL or not self.is_crowding(held):
            return 0.0
        return min(_RESTS * (self._clock() - held.began), _LONGEST_REST_S)

    def require_rows(self, request: Request, caller: Caller) -> None:
        """Refuse a caller who has to wait for rows.

        Raises:
            ProblemError: TOO_MANY_ROWS.
        """
        self._require_rows(self._held(request, caller, "changes"))

    def _require_rows(self, held: _Held) -> None:
        if (wait_s := self.rows.wait_s(held.owner)) > 0:
            detail = f"{self.rows.a_minute:,} rows a minute may be read; wait for Retry-After"
            raise self._refuse(held, ProblemError("TOO_MANY_ROWS", detail), "rows", wait_s)

    async def hold_patiently(
        self, request: Request, caller: Caller, kind: str, at_once: int = 0
    ) -> _Held:
        """Return the same of a reading that others may share: it waits however many wait."""
        held = self._held(request, caller, kind, at_once)
        await self.turns.take(held.line, held.at_once, is_patient=True)
        return held

    def _held(self, request: Request, caller: Caller, kind: str, at_once: int = 0) -> _Held:
        owner, now = owner_of(request, caller), self._clock()
        if owner != self._newest[0]:
            self._other = self._newest
        self._newest = owner, now
        return _Held(self, owner, (kind, owner), at_once or self._at_once, now)

    def headers(self, held: _Held) -> dict[str, str]:
        """Return the rest of the caller's share (draft-ietf-httpapi-ratelimit-headers-10)."""
        most = self.turns.room((), held.at_once)
        pulls = max(0, self.turns.room(held.line, held.at_once))
        left = self.rows.left(held.owner)
        full_in_s = ceil((self.rows.a_minute - left) * 60 / self.rows.a_minute)
        return {
            "RateLimit-Policy": f'"rows";q={self.rows.a_minute};w=60;qu="rows", '
            f'"pulls";q={most};qu="concurrent-requests"',
            "RateLimit": f'"rows";r={max(0, int(left))};t={full_in_s}, "pulls";r={pulls}',
        }

    def _refuse(
        self, held: _Held, problem: ProblemError, reason: str, wait_s: float
    ) -> ProblemError:
        self._measurements.refused(reason)
        problem.headers |= {**self.headers(held), "Retry-After": str(ceil(wait_s))}
        return problem


def owner_of(request: Request, caller: Caller) -> str:
    """Return the name under which a caller's share is counted: the token, else the address."""
    return caller.token_id or owner_of_address(request)


def owner_of_address(request: Request) -> str:
    """Return the name under which the share of an address is counted."""
    return f"address {origin_of(request.client.host if request.client else '')}"


async def _pull(request: Request, caller: CallerOf) -> None:
    await _begin(request, caller, _PULL, 0)


async def _figures(request: Request, caller: CallerOf) -> None:
    await _begin(request, caller, "figures", _FIGURES_AT_ONCE)


# For a router or route: its requests take turns. The envelope ends a turn when the answer begins:
# the speed at which it is taken is no matter of reading.
PULLS: Any = Depends(_pull)
FIGURES: Any = Depends(_figures)


async def _begin(request: Request, caller: Caller, kind: str, at_once: int) -> None:
    held = await part_of(request, Shares).hold(request, caller, kind, at_once)
    setattr(request.state, _STATE, held)


def is_crowding(request: Request) -> bool:
    """Return True if many further pulls of the caller of a request wait while others ask."""
    held = getattr(request.state, _STATE, None)
    return isinstance(held, _Held) and held.shares.is_crowding(held)


def note_rows(request: Request, count: int) -> None:
    """Note how many rows were read for a request; from any thread."""
    if isinstance(held := getattr(request.state, _STATE, None), _Held):
        held.rows += count


def end_turn(scope: Scope) -> dict[str, str]:
    """End the turn of a request, if it had one; return the headers with the rest of the share."""
    held = scope["state"].get(_STATE)
    if not isinstance(held, _Held):
        return {}
    scope["state"][OWNER] = held.owner
    held.end()
    return held.shares.headers(held)


@asynccontextmanager
async def shared_turn(
    request: Request, caller: Caller, kind: str, at_once: int = 0
) -> AsyncIterator[_Held]:
    """Hold a turn of a separate line while a reading runs that others may share.

    Not in the line of the pulls: one of these may be waiting for that reading.
    """
    held = await part_of(request, Shares).hold_patiently(request, caller, kind, at_once)
    try:
        yield held
    finally:
        held.end()


@asynccontextmanager
async def ingest_turn(request: Request, caller: Caller) -> AsyncIterator[None]:
    """Hold a turn while records are judged; not while they arrive or are written.

    Raises:
        ProblemError: TOO_MANY_AT_ONCE.
    """
    held = await part_of(request, Shares).hold(request, caller, _INGEST)
    try:
        yield
    finally:
        held.end()


class QueueFullError(Exception):
    """As many pulls of a caller wait as may."""


class WaiterLeftError(Exception):
    """No client waits for the answer any more."""


async def _stays() -> bool:
    return False


@dataclass(slots=True)
class _Line:
    """The pulls of one caller: how many are under way, and those that wait, the first first."""

    under_way: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """The pulls of all callers. For one event loop; a caller without a pull takes no memory.

    Args:
        most_waiting: how many pulls of one caller may wait.
    """

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._lines: dict[Hashable, _Line] = {}

    def __len__(self) -> int:
        """Return how many callers have a pull under way or waiting."""
        return len(self._lines)

    @property
    def waiting(self) -> int:
        """How many pulls wait, of all callers."""
        return sum(len(line.waiting) for line in self._lines.values())

    def waiting_of(self, owner: Hashable) -> int:
        """Return how many pulls of a caller wait."""
        return len(self._lines[owner].waiting) if owner in self._lines else 0

    def room(self, owner: Hashable, at_once: int) -> int:
        """Return how many more pulls of a caller would be taken in now."""
        line = self._lines.get(owner, _Line())
        return at_once + self._most_waiting - line.under_way - len(line.waiting)

    async def take(
        self,
        owner: Hashable,
        at_once: int,
        has_left: Callable[[], Awaitable[bool]] = _stays,
        *,
        is_patient: bool = False,
    ) -> None:
        """Return when it is the turn of a caller's pull; `give_back` ends it.

        Args:
            owner: the caller.
            at_once: how many of its pulls may be under way.
            has_left: returns True once no client waits for the answer.
            is_patient: it may wait, however many do.

        Raises:
            QueueFullError: nothing was taken.
            WaiterLeftError: nothing was taken.
        """
        line = self._lines.setdefault(owner, _Line())
        if line.under_way < at_once:
            line.under_way += 1
            return
        if len(line.waiting) >= self._most_waiting and not is_patient:
            raise QueueFullError
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=_LOOK_EVERY_S)
                if await has_left():
                    raise WaiterLeftError
        except BaseException:
            if turn.done():
                # It was this one's turn just now.
                self.give_back(owner)
            else:
                line.waiting.remove(turn)
            raise

    def give_back(self, owner: Hashable, rest_s: float = 0.0) -> None:
        """End a turn: the caller's next pull has it, if one waits `rest_s` later."""
        line = self._lines[owner]
        if not line.waiting:
            line.under_way -= 1
            if not line.under_way:
                del self._lines[owner]
        elif rest_s:
            asyncio.get_running_loop().call_later(rest_s, self.give_back, owner)
        else:
            line.waiting.popleft().set_result(None)
