"""Lets requests begin in turns of tokens and addresses.

Used round the routes. The event loop handles one request after the other. Without turns, the
requests of one caller on a hundred connections would all come before another's.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from livemart.serve.auth.callers import shown_token_id
from livemart.serve.http.measurements import Measurements
from livemart.serve.shares.round_robin import LINE, RoundRobin
from livemart.serve.shares.shares import owner_of_address

# They never wait.
_HEALTH = ("/healthz", "/readyz")
# Rounds of the event loop from one begin to the next. The request runs in the first one; in the
# second one bytes are read that arrived meanwhile, and in the third one their requests join a line.
_ROUNDS = 4


class Begins:
    """Begins one request at a time: of the callers that wait, each has one begun in turn.

    A request is begun, not ended, before the next one: those that read the store or send a stream
    go on beside each other.
    """

    def __init__(self, app: ASGIApp, measurements: Measurements) -> None:
        self._app = app
        self._waiting = RoundRobin[asyncio.Future[None]]()
        self._has_just_begun = False
        measurements.waiting_requests.set_function(lambda: len(self._waiting))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and scope["path"] not in _HEALTH:
            request = Request(scope)
            line = shown_token_id(request) or owner_of_address(request)
            LINE.set(line)
            await self._wait(line)
        await self._app(scope, receive, send)

    async def _wait(self, line: str) -> None:
        if self._has_just_begun:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.put(line, turn)
            await turn
        else:
            self._has_just_begun = True
            self._go_on_after(_ROUNDS)

    def _go_on_after(self, rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._go_on_after, rounds - 1)
        else:
            self._begin_next()

    def _begin_next(self) -> None:
        while (turn := self._waiting.take()) is not None:
            # One that was cancelled meanwhile has no turn.
            if not turn.done():
                turn.set_result(None)
                self._go_on_after(_ROUNDS)
                return
        self._has_just_begun = False
