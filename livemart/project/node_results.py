"""Translates what dbt says of its nodes: progress while it builds, then one result each.

Used by `Dbt` and by what watches it. A word of dbt's that is not known counts as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

NodeStatus = Literal["success", "warn", "error", "skipped"]
_STATUS: Mapping[str, NodeStatus] = {
    "success": "success",
    "pass": "success",
    "no-op": "success",
    "warn": "warn",
    "skipped": "skipped",
}


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


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """One node began or ended. `status` is None when it began."""

    unique_id: str
    status: NodeStatus | None


def node_result(result: Any) -> NodeResult:
    """Return one of dbt's results."""
    return NodeResult(
        unique_id=result.node.unique_id,
        name=result.node.name,
        kind=str(getattr(result.node.resource_type, "value", result.node.resource_type)),
        status=status_of(result.status),
        message=str(result.message or ""),
        took_ms=round(result.execution_time * 1000),
        failures=result.failures,
    )


def node_progress(event: Any) -> NodeProgress | None:
    """Return what an event of dbt's says of a node, None if it says nothing."""
    if event.info.name not in ("NodeStart", "NodeFinished"):
        return None
    node = event.data.node_info
    ended = event.info.name == "NodeFinished"
    return NodeProgress(str(node.unique_id), status_of(node.node_status) if ended else None)


def status_of(word: object) -> NodeStatus:
    """Return what dbt's word for an outcome means."""
    return _STATUS.get(str(word), "error")
