"""Translates dbt's reports on its nodes: progress of a build, one result each, one error.

Used by `Dbt` and by what watches it. A word of dbt's that is not known counts as an error; the
message of one is the database's own, without the query plan below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from livemart.project.graph import Model, Project

NodeStatus = Literal["success", "warn", "error", "skipped", "compiled", "uncompiled"]
_STATUS: Mapping[str, NodeStatus] = {
    "success": "success",
    "pass": "success",
    "no-op": "success",
    "warn": "warn",
    "skipped": "skipped",
}
# The words for a node that is not built: its rows are not there. One that asks for a table of the
# next build is compiled then; any other error ends the command.
_STATUS_COMPILED: Mapping[NodeStatus, NodeStatus] = {"success": "compiled", "error": "uncompiled"}
# Events that dbt prints as a node begins and ends.
_LINES = frozenset(
    {
        "LogStartLine",
        "LogModelResult",
        "LogSeedResult",
        "LogSnapshotResult",
        "LogTestResult",
        "LogNodeNoOpResult",
    }
)
# An operator that is not resolved, or a branch below one.
# A property that livemart refuses.
WRONG_ADVICE = re.compile(r"\s*Alternatively, enable Column Mapping[^\n]*")
_OF_A_PLAN = re.compile(r"\s*(?:'[A-Z]\w*(?:\s|$)|\+-|:-)")


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The end of one node. `failures` counts the rows a data test found, else None."""

    unique_id: str
    name: str
    kind: str
    status: NodeStatus
    message: str
    took_ms: int
    failures: int | None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """One node began or ended, or dbt prints a line about it.

    `status` is None when it began. `line` is what dbt prints; such a progress has no other news.
    """

    unique_id: str
    status: NodeStatus | None
    line: str | None = None


def node_result(result: Any) -> NodeResult:
    """Return one of dbt's results."""
    return NodeResult(
        unique_id=result.node.unique_id,
        name=result.node.name,
        kind=str(result.node.resource_type),
        status=status_of(result.status),
        message=str(result.message or ""),
        took_ms=round(result.execution_time * 1000),
        failures=result.failures,
        ended_at=_end_of(result.timing),
    )


def _end_of(timing: Iterable[Any]) -> datetime | None:
    """Return when the last step of a node ended; dbt's times are UTC and do not say so."""
    ends = [step.completed_at for step in timing if step.completed_at is not None]
    return max(ends).replace(tzinfo=UTC) if ends else None


def node_progress(event: Any) -> NodeProgress | None:
    """Return the progress of a node in an event of dbt's, None if there is none."""
    name = event.info.name
    if name not in ("NodeStart", "NodeFinished", *_LINES):
        return None
    node = event.data.node_info
    has_ended = name not in ("NodeStart", "LogStartLine")
    status = status_of(node.node_status) if has_ended else None
    return NodeProgress(str(node.unique_id), status, event.info.msg if name in _LINES else None)


def as_compiled(progress: NodeProgress) -> NodeProgress:
    """Return the progress of a node that is compiled and not built."""
    if (status := progress.status) is None:
        return progress
    return replace(progress, status=_STATUS_COMPILED.get(status, status))


def status_of(word: object) -> NodeStatus:
    """Return the meaning of dbt's word for an outcome."""
    return _STATUS.get(str(word), "error")


def without_plan(message: str) -> str:
    """Return Spark's message without the query plan below it, and Delta's without column mapping.

    >>> without_plan("no column x\\n'Sort ['x]\\n+- 'Aggregate")
    'no column x'
    """
    lines = WRONG_ADVICE.sub("", message).strip().splitlines()
    ends = (n for n, line in enumerate(lines) if n and _OF_A_PLAN.match(line))
    return "\n".join(lines[: next(ends, len(lines))])


def failures_of(
    project: Project,
    results: Mapping[str, NodeResult],
    explain: Callable[[Model], str | None] = lambda model: None,
) -> dict[str, str]:
    """Return the message about each node that failed, by unique id.

    Args:
        explain: says why a model's SQL fails as it was written; None if it does not know better
            than dbt, whose statement has the SQL inside.
    """
    messages = {}
    for result in results.values():
        if result.status == "error":
            model = project.models.get(result.unique_id)
            why = explain(model) if model else None
            file = model.file if model else result.name
            messages[result.unique_id] = f"{file}: {why or without_plan(result.message)}"
    return messages
