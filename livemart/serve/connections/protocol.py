"""Gives a connection so long to send its request, and to take its answer.

Used by the server in place of uvicorn's own protocol, which waits for ever for all but the request
after an answer (ADR-0014).
"""

from __future__ import annotations

import asyncio
import math
import socket
from enum import Enum
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from livemart.serve.connections.kept import Admission, Connections
from livemart.serve.http.problems import ProblemError

# From the connection, or the last answer, to the end of a request's header.
HEAD_S = 10.0
# For a body, and for an answer; what is long has as much more as it needs at this rate.
BODY_S = 20.0
TAKEN_S = 30.0
BYTES_A_SECOND = 16 * 1024
# A client that takes nothing of an answer that is still being written.
STALLED_S = 60.0
# For the last bytes of a connection that the server has closed.
_LAST_S = 5.0
# In the state of a request's scope: the connection is held on the reserve.
ON_RESERVE = "is_on_reserve"
# There, too: the caller whose answer this is, by the name under which its share is counted.
OWNER = "owner"


class _Phase(Enum):
    """A connection waits for its client's request, for the server, or for its client's reading."""

    HEAD = "head"
    BODY = "body"
    SERVER = "server"
    TAKING = "taking"


class TimedProtocol(H11Protocol):
    """A connection with deadlines, which `connections` looks at.

    Args:
        connections: those of the server.
        error_base_url: what the `type` of a problem begins with.
        given: what uvicorn gives to each protocol.
    """

    def __init__(self, *, connections: Connections, error_base_url: str, **given: Any) -> None:
        super().__init__(**given)
        self.deadline = math.inf
        self._all = connections
        self._error_base_url = error_base_url
        self._phase = _Phase.SERVER
        # Which request the phase is of.
        self._of_cycle: object = None
        self._received = 0
        # An answer is complete, and its client has not taken it yet.
        self._is_untaken = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        admission = self._all.admit(self, self.client[0] if self.client else "")
        if admission is Admission.REFUSED:
            self._end(ProblemError("TOO_MANY_CONNECTIONS", "close some, or try again later"))
            return
        if admission is Admission.RESERVE:
            self.app_state = {**self.app_state, ON_RESERVE: True}
        _limit_silence(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.leave(self)
        super().connection_lost(exc)
        # uvicorn leaves the timer behind where a connection broke.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        self._observe()
        if self._phase is _Phase.BODY:
            self.deadline += len(data) / BYTES_A_SECOND

    def _should_upgrade(self) -> bool:
        # A server may ignore this wish (RFC 9110, 7.8). uvicorn would log the advice to install a
        # library of web sockets, which no path uses.
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no HTTP as any other request: with a problem."""
        cycle = self.cycle
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        problem = ProblemError("REQUEST_REFUSED", "this is no request of HTTP/1.1")
        self._end(None if is_answering else problem)

    def on_response_complete(self) -> None:
        # The next request is begun when the client has taken this answer. Otherwise this deadline
        # would be forgotten, and a further answer would wait in memory.
        self._is_untaken = self.flow.write_paused and not self.transport.is_closing()
        if self._is_untaken:
            self._wait_for_head()
            return
        super().on_response_complete()
        self._observe()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.deadline = min(self.deadline, self.loop.time() + STALLED_S)
        owner = self.scope["state"].get(OWNER) if self.scope else None
        self._all.note_untaken(self, owner, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.note_taken(self)
        if self._is_untaken:
            self._phase = _Phase.SERVER
            self.on_response_complete()
        elif self._phase is _Phase.SERVER:
            self.deadline = math.inf

    def expire(self, now: float) -> None:
        """End the connection; one whose body the application does not take has another while."""
        if self.transport.is_closing() or self._phase in (_Phase.TAKING, _Phase.SERVER):
            self._all.note_ended("slow_reader")
            self.cut_off()
        elif self._phase is _Phase.HEAD:
            self._all.note_ended("slow_head" if self._received else "silent")
            late = ProblemError("REQUEST_TIMEOUT", f"send a whole header within {HEAD_S:g} s")
            self._end(late if self._received else None)
        elif self.flow.read_paused:
            self.deadline = now + BODY_S
        else:
            self._all.note_ended("slow_body")
            late = ProblemError("REQUEST_TIMEOUT", "the rest of the body did not arrive in time")
            self._end(None if self.cycle.response_started else late)

    def cut_off(self) -> None:
        """End the connection at once; bytes that were not sent yet are lost."""
        self.deadline = math.inf
        self.transport.abort()

    def _observe(self) -> None:
        """Note the phase of the request; each new phase begins a deadline."""
        cycle = self.cycle
        is_between = cycle is None or cycle.response_complete
        if is_between:
            if self._phase not in (_Phase.HEAD, _Phase.TAKING):
                self._wait_for_head()
            return
        phase = _Phase.BODY if cycle.more_body else _Phase.SERVER
        if phase is not self._phase or cycle is not self._of_cycle:
            self._phase, self._of_cycle, self._is_untaken = phase, cycle, False
            self._all.note_busy(self)
            if phase is _Phase.BODY:
                self.deadline = self.loop.time() + BODY_S
            else:
                self.deadline = math.inf
                if self.flow.write_paused:
                    self.pause_writing()

    def _wait_for_head(self) -> None:
        now, untaken = self.loop.time(), self.transport.get_write_buffer_size()
        if untaken:
            # It ends once it has taken all: not silent, and not for longer than that may take.
            self._phase = _Phase.TAKING
            self.deadline = now + TAKEN_S + untaken / BYTES_A_SECOND
            return
        self._phase, self._received = _Phase.HEAD, 0
        self.deadline = now + HEAD_S
        self._all.note_silent(self)

    def _end(self, problem: ProblemError | None) -> None:
        """Close the connection once the problem is sent; nothing of the request is heard."""
        if problem is not None:
            path = self.scope["path"] if self._phase is _Phase.BODY else ""
            self.transport.write(problem.message(self._error_base_url, path))
        self.transport.close()
        self.deadline = self.loop.time() + _LAST_S


def _limit_silence(transport: asyncio.Transport) -> None:
    """Let the kernel give up a client that is gone, or takes nothing even of what is closed."""
    client: socket.socket | None = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if client is not None and option is not None and client.family != socket.AF_UNIX:
        client.setsockopt(socket.IPPROTO_TCP, option, int(STALLED_S * 1_000))
