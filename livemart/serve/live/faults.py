"""What goes wrong in a look at the store: told once for each kind, until all is well again."""

from __future__ import annotations

from typing import Literal

import structlog

from livemart.errors import PublishError, first_lines

Part = Literal["tokens", "snapshots"]


class Faults:
    """The fault of each part of a look, if it has one.

    The parts fail and mend by themselves: tokens are read less often than snapshots, and one that
    is read says nothing of the other.
    """

    def __init__(self) -> None:
        self._found: dict[Part, PublishError] = {}
        self._told: set[str] = set()

    @property
    def newest(self) -> PublishError | None:
        """What answers are refused with; None if all is well."""
        return next(reversed(self._found.values()), None)

    def met(self, part: Part, error: Exception) -> None:
        """Keep a fault; tell it, unless one of its kind was told since all was well."""
        is_expected = isinstance(error, PublishError)
        kind = error.code if isinstance(error, PublishError) else type(error).__name__
        found = error if isinstance(error, PublishError) else _unexpected(part, error)
        self._found.pop(part, None)
        self._found[part] = found
        if kind not in self._told:
            self._told.add(kind)
            log = structlog.get_logger()
            if is_expected:
                log.warning("store_unreachable", error=str(found))
            else:
                log.error("look_failed", part=part, error=str(found), exc_info=error)

    def mended(self, part: Part) -> None:
        """Forget the fault of a part."""
        if self._found.pop(part, None) is not None and not self._found:
            self._told.clear()
            structlog.get_logger().info("store_back")


def _unexpected(part: Part, error: Exception) -> PublishError:
    return PublishError(
        "STORE_UNREACHABLE",
        f"{part}: found {type(error).__name__}: {first_lines(error)}",
        hint="the traceback is beside this; if it is ours, please report it",
    )
