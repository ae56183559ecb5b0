"""Replays a micro-batch as long as its faults may pass.

Used by the pipeline round the landing stream. A fault of the project or of the state is raised at
once: no replay overcomes it. Between two attempts it rests, longer each time. The rest is random,
so that processes that met the same fault do not all return at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from threading import Event

from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event

from livemart.conflicts import is_another_writers, may_pass
from livemart.errors import ConfigError, StateError, causes

_FIRST_REST_S = 0.2
_LONGEST_REST_S = 30.0

Notify = Callable[[BaseException, int, int], None]


class Stopped(Exception):
    """Raised inside a micro-batch that is abandoned because the process is to stop."""


class ProjectEdited(Exception):
    """Raised inside a micro-batch that must not run on a project that is out of date."""


@dataclass(eq=False)
class Replays:
    """Runs a body again while its faults pass.

    A commit of another writer is no fault: it only costs the batch its work once. A dbt that builds
    many models beside the stream may hit one micro-batch any number of times, and must not end the
    stream. A source that is away is no failure of a stream either: the stream waits for it.

    Args:
        attempts: failures in a row, other writers' commits apart, after which the last is raised.
        stop: ends the waiting, and the replays.
        notify: takes the error, the failures in a row so far and `attempts` before each replay.
        waits_for_sources: however long one is away.
        chance: shortens each rest, by up to a half.
    """

    attempts: int
    stop: Event
    notify: Notify
    _: KW_ONLY
    waits_for_sources: bool = False
    chance: Random = field(default_factory=Random)
    _failures: int = field(default=0, init=False)
    _in_a_row: int = field(default=0, init=False)

    def succeeded(self) -> None:
        """Count failures from zero again: a micro-batch has ended."""
        self._failures = self._in_a_row = 0

    def run(self, body: Callable[[], None]) -> None:
        """Run `body` until it returns, or fails finally; after `stop` an error means its end."""
        self.succeeded()
        for attempt in Retrying(
            retry=retry_if_exception(is_retriable),
            stop=lambda _: self._failures >= self.attempts,
            wait=lambda _: self._rest_s(),
            sleep=sleep_using_event(self.stop),
            before_sleep=self._tell,
            reraise=True,
        ):
            with attempt:
                try:
                    body()
                except Exception as error:
                    if self.stop.is_set():
                        return
                    self._in_a_row += 1
                    is_waited_for = self.waits_for_sources and _is_source_away(error)
                    self._failures += not (is_another_writers(error) or is_waited_for)
                    raise

    def _rest_s(self) -> float:
        longest: float = min(_FIRST_REST_S * 2 ** min(self._in_a_row, 10), _LONGEST_REST_S)
        return longest * self.chance.uniform(0.5, 1)

    def _tell(self, state: RetryCallState) -> None:
        failure = state.outcome.exception() if state.outcome else None
        self.notify(failure or RuntimeError("unknown"), self._failures, self.attempts)


def _is_source_away(error: BaseException) -> bool:
    return any(getattr(cause, "is_away", False) for cause in causes(error))


def is_retriable(error: BaseException) -> bool:
    """Return True for a fault that a replay of the micro-batch may overcome."""
    lasting = StateError | ConfigError | Stopped | ProjectEdited
    if any(isinstance(cause, lasting) for cause in causes(error)):
        return False
    return may_pass(error)
