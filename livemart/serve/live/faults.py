"""Holds the faults of looks at the store, each kind reported once while it lasts.

Used by the hub. Tokens and snapshots fail and recover by themselves: tokens are read less often,
and one that is read says nothing of the other.
"""

from __future__ import annotations

from typing import Literal

import structlog

from livemart.errors import PublishError, fault_text

Subject = Literal["tokens", "snapshots"]


class Faults:
    """The present fault of each subject of a look, if it has one."""

    def __init__(self) -> None:
        self._errors: dict[Subject, PublishError] = {}
        self._kinds: set[str] = set()

    @property
    def newest(self) -> PublishError | None:
        """The fault that answers are refused with; None if all is well."""
        return next(reversed(self._errors.values()), None)

    def of(self, subject: Subject) -> PublishError | None:
        """Return the present fault of one subject, None if it has none."""
        return self._errors.get(subject)

    def report(self, subject: Subject, error: Exception) -> None:
        """Keep a fault; log it, unless one of its kind was logged since all was well."""
        fault = error if isinstance(error, PublishError) else _unexpected(subject, error)
        kind = fault.code if fault is error else type(error).__name__
        self._errors.pop(subject, None)
        self._errors[subject] = fault
        if kind not in self._kinds:
            self._kinds.add(kind)
            log = structlog.get_logger()
            if fault is error:
                log.warning("store_unreachable", error=str(fault))
            else:
                log.error("look_failed", part=subject, error=str(fault), exc_info=error)

    def resolve(self, subject: Subject) -> None:
        """Forget the fault of a subject."""
        if self._errors.pop(subject, None) is not None and not self._errors:
            self._kinds.clear()
            structlog.get_logger().info("store_back")


def _unexpected(subject: Subject, error: Exception) -> PublishError:
    return PublishError(
        "STORE_UNREACHABLE",
        f"{subject}: found {fault_text(error)}",
        hint="see the traceback; if livemart is at fault, please report it",
    )
