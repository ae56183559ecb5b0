"""Reports livemart's own mistakes, apart from faults that it cannot help.

Used where a slower way is left after an unexpected error: a refresh recomputes the model, a check
runs the test in full. The report is an event of the log with the traceback. With
`LIVEMART_OWN_FAULTS=raise` the error is raised instead: so run the tests.
"""

from __future__ import annotations

import os
import traceback

import structlog

from livemart.conflicts import may_pass, speaks_of
from livemart.errors import ConfigError, StateError, causes, fault_text, full_disk

VARIABLE = "LIVEMART_OWN_FAULTS"
# The session ends, or the work was called off: nothing else would run on it either.
_ENDED = (
    "JOB_CANCELLED",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "stopped SparkContext",
    "Py4JNetworkError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "BrokenPipeError",
)


def is_own_fault(error: BaseException) -> bool:
    """Return True for an error that another way to the same rows may avoid.

    A full disk, another writer's commit, a session that ends and a state to be mended first are met
    on every way.
    """
    if not isinstance(error, Exception) or may_pass(error) or ends_everything(error):
        return False
    return not any(isinstance(cause, StateError | ConfigError) for cause in causes(error))


def ends_everything(error: BaseException) -> bool:
    """Return True for an error that all other work would meet, too: no session, no space."""
    return full_disk(error) is not None or any(speaks_of(cause, _ENDED) for cause in causes(error))


class OwnFaults:
    """The mistakes that were reported in this process."""

    def __init__(self) -> None:
        self._reported: set[tuple[str, ...]] = set()

    def report(self, event: str, error: Exception, **keys: object) -> None:
        """Log an error with its traceback, once for the same keys, type and line of code.

        Raises:
            Exception: the error itself, where the environment says so.
        """
        if os.environ.get(VARIABLE) == "raise":
            raise error
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        fault = (event, *map(str, keys.values()), type(error).__name__, place)
        if fault in self._reported:
            return
        self._reported.add(fault)
        structlog.get_logger().error(
            event,
            **keys,
            error=fault_text(error),
            hint="the rows are right, it only took longer; please report this traceback",
            exc_info=error,
        )
