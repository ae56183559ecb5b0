"""Opens sessions of PostgreSQL that give up a silent server, and ends those that were given up.

The kernel notices that a peer is gone, but not that a proxy or a firewall takes the bytes and
passes nothing on: only the waiting program can notice that. A server that is at work, on a long
statement or behind a lock, is silent, too; so a second session is asked before one is given up. A
session that was given up may hold locks for hours; it is ended once the server can be reached.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Mapping
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import waiting

_Result = TypeVar("_Result")
# How long a session may be silent before another one is asked, and how long that one may take.
SILENT_S = 5.0
_PROBE_S = 3
# For TCP, in seconds: it notices a machine that is gone as fast as silence is noticed.
_TCP = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
TCP_PARAMETERS: Mapping[str, int] = {"keepalives": 1, "tcp_user_timeout": 10_000, **_TCP}
# The same at the server, so that it ends the sessions of a machine that is gone.
SERVER_OPTIONS = " ".join(f"-c tcp_{name}={seconds}" for name, seconds in _TCP.items())

_IS_AT_WORK = """
select 1 from pg_stat_activity
where application_name = %s and state = 'active' and wait_event_type is distinct from 'Client'
"""
_END = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = any(%s) and usename = current_user and pid <> pg_backend_pid()
"""


class _Session(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent and not at work."""

    is_at_work: Callable[[], bool] | None = None
    is_left: Callable[[], None] | None = None

    def wait(
        self,
        gen: Generator[Any, Any, _Result],
        interval: float = 0.1,
        timeout: float | None = None,
    ) -> _Result:
        """Wait for an answer; psycopg calls this for every statement, commit and copy."""
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        answered_at, is_suspect = monotonic(), False
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready != waiting.Ready.NONE:
                    answered_at, is_suspect = monotonic(), False
                elif is_suspect:
                    # Looked at once more: the answer may have come while the other was asked.
                    self._leave()
                elif monotonic() - answered_at >= SILENT_S:
                    is_suspect = self.is_at_work is None or not self.is_at_work()
                    answered_at = monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            result: _Result = end.value
            return result

    def _leave(self) -> None:
        self.pgconn.finish()
        if self.is_left is not None:
            self.is_left()
        raise psycopg.OperationalError(
            f"the server has said nothing for {SILENT_S:g} s and is not at work on the statement"
        )


class Sessions:
    """Opens the sessions of one engine. Safe to use from several threads."""

    def __init__(self) -> None:
        self._left: set[str] = set()

    def open(self, parameters: Mapping[str, Any]) -> psycopg.Connection[Any]:
        """Return a new session; those that were given up before are ended.

        Args:
            parameters: of `psycopg.connect`.

        Raises:
            psycopg.OperationalError: the server cannot be reached, or is silent.
        """
        name = f"livemart-{secrets.token_hex(6)}"
        session = _Session.connect(**{**parameters, "application_name": name})
        if left := list(self._left):
            try:
                session.execute(_END, [left])
                session.rollback()
            except psycopg.Error:
                session.close()
                raise
            self._left.difference_update(left)
        session.is_at_work = lambda: _is_at_work(parameters, name)
        session.is_left = lambda: self._left.add(name)
        return session


def _is_at_work(parameters: Mapping[str, Any], name: str) -> bool:
    """Return whether the server can be reached and works on the statement of a session."""
    try:
        with _Session.connect(**{**parameters, "connect_timeout": _PROBE_S}) as other:
            return other.execute(_IS_AT_WORK, [name]).fetchone() is not None
    except psycopg.Error:
        return False
