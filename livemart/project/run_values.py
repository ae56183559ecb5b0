"""Gives the values of a run that SQL may mention: an id, a start.

Used by `Dbt`, which compiles every node with the values of one run: that of the micro-batch, not of
the process. All other parts of dbt's context that differ from run to run, or from command to
command, are the same everywhere: those of a build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from uuid import UUID, uuid5

_NAMESPACE = UUID("6f0f7c1e-6a0b-4a0e-9a65-3a8f3c1c2d11")
_MENTIONS = re.compile(r"\b(?:invocation_id|run_started_at|modules\s*(?:\.\s*datetime|\[))")
_THREAD = "Thread-1 (worker)"
_COMMAND = "dbt build"


@dataclass(frozen=True, slots=True)
class RunValues:
    """`invocation_id` and `run_started_at` (UTC) of dbt's context; its `now()` is the latter."""

    invocation_id: str
    started_at: datetime

    def name_in(self, context: MutableMapping[str, Any]) -> None:
        """Let a hook that is rendered with a context of dbt's see this run; its clock goes on."""
        context["invocation_id"] = self.invocation_id
        context["run_started_at"] = self.started_at

    def put_into(self, context: MutableMapping[str, Any]) -> None:
        """Let SQL that is rendered with a context of dbt's see these values."""
        self.name_in(context)
        context["thread_id"] = _THREAD
        # The command has other names, too, in dbt's context.
        context["flags"].WHICH = "build"
        context["flags"].INVOCATION_COMMAND = _COMMAND
        arguments = context.get("invocation_args_dict") or {}
        command = {"which": "build", "invocation_command": _COMMAND}
        context["invocation_args_dict"] = {**arguments, **command}
        modules = {**context["modules"]}
        modules["datetime"] = {**modules["datetime"], **_clock(self.started_at)}
        context["modules"] = modules


# Two runs that differ in all that can be said of a moment; SQL is the same SQL if that of the first
# one is.
CANONICAL = RunValues(
    "00000000-0000-4000-8000-000000000000", datetime(2001, 2, 3, 4, 5, 6, 789012, UTC)
)
OTHER = RunValues(
    "11111111-1111-4111-9111-111111111111", datetime(2012, 11, 22, 15, 46, 57, 13, UTC)
)


def run_of(epoch: str, batch_id: int, started_at: datetime) -> RunValues:
    """Return the values of a micro-batch: the same whenever they are asked for."""
    return RunValues(str(uuid5(_NAMESPACE, f"{epoch}/{batch_id}")), started_at.astimezone(UTC))


def mentions_run(texts: Iterable[str]) -> bool:
    """Return True if one of these templates may say something of the run.

    >>> mentions_run(["select '{{ invocation_id }}' as run"])
    True
    """
    return any(_MENTIONS.search(text) for text in texts)


def _clock(now: datetime) -> dict[str, type]:
    """Return the `datetime` and `date` of Python with a clock that does not move."""

    class Datetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return now.astimezone(tz) if tz else now.replace(tzinfo=None)

        @classmethod
        def utcnow(cls) -> Any:
            return now.replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return now.replace(tzinfo=None)

    class Date(date):
        @classmethod
        def today(cls) -> Any:
            return now.date()

    return {"datetime": Datetime, "date": Date}
