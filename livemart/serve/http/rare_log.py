"""Logs the first event of a kind at once, and those that follow as a count, once a minute.

Used where a client decides how often something happens: it must not fill a disk with lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any

import structlog

_EVERY_S = 60.0
# Kinds that are remembered: names of our own, and templates of messages of libraries.
_MOST_KINDS = 1_000


class RareLog:
    """Log events by kind, each kind once a minute. Safe to use from several threads.

    Args:
        clock: seconds that only ever rise.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        self._unlogged: Counter[str] = Counter()
        self._lock = Lock()

    def tell(self, event: str, kind: str = "", *, level: str = "warning", **keys: Any) -> None:
        """Log an event, unless one of its kind was logged within the last minute.

        `more`: how many of the kind were not logged since the last one that was.
        """
        name = f"{event} {kind}"
        with self._lock:
            now, logged_at = self._clock(), self._logged_at.get(name)
            if logged_at is not None and now - logged_at < _EVERY_S:
                self._unlogged[name] += 1
                return
            if len(self._logged_at) >= _MOST_KINDS:
                self._logged_at.clear()
                self._unlogged.clear()
            self._logged_at[name] = now
            count = self._unlogged.pop(name, 0)
        more = {"more": count} if count else {}
        getattr(structlog.get_logger(), level)(event, **keys, **more)


class _ToRareLog(logging.Handler):
    """Hands records of the standard library's logging over; the template of a message is its kind.

    A record with an exception has its traceback. An answer that the end of the server cuts off is
    no fault: another record counts these.
    """

    def __init__(self, log: RareLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return
        keys: dict[str, Any] = {"exc_info": record.exc_info} if record.exc_info else {}
        self._log.tell(
            "server_warning",
            str(record.msg).partition("\n")[0],
            logger=record.name,
            message=record.getMessage().partition("\n")[0],
            **keys,
        )


@contextmanager
def redirected(log: RareLog, *loggers: str) -> Iterator[None]:
    """Log the records of `logging` as events of the project until the block ends."""
    handler = _ToRareLog(log)
    redirected_loggers = [logging.getLogger(name) for name in loggers]
    before = [logger.propagate for logger in redirected_loggers]
    for logger in redirected_loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagates in zip(redirected_loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagates
