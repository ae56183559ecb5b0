"""Describes bodies for the OpenAPI document: the parts that all rooms of the server share.

Used by the routes; tests hold the bodies to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """A body without members that it does not name."""

    model_config = ConfigDict(extra="forbid")


class Problem(Shape):
    """An answer that is not a success (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable; docs/errors.md has a section on each.")
    detail: str
    instance: str
    snapshot_id: int | None = Field(
        default=None, description="While the store is away: the newest snapshot in memory."
    )
    as_of: datetime | None = Field(default=None, description="The one now of that snapshot, UTC.")
    staleness_s: float | None = Field(
        default=None, description="Seconds since it was last known to be the newest."
    )


class SnapshotHead(Shape):
    """The snapshot that a body was read from; every body has it."""

    as_of: datetime | None = Field(description="The one now of the snapshot, UTC.")
    snapshot_id: int
    epoch: str = Field(
        description="Epoch of the pipeline; a new one restarts the ids of snapshots."
    )
    published_at: datetime


class OfModel(Shape):
    """The age of a model that is set aside; nothing for any other."""

    set_aside_since: int | None = Field(
        default=None, description="Since this snapshot its rows are those of an earlier one."
    )
    refreshed_at: datetime | None = Field(
        default=None, description="When the last snapshot was made that had moved its rows."
    )


class Alive(Shape):
    """The server lives."""

    status: Literal["alive"]


class Ready(Shape):
    """The newest snapshot is fresh."""

    status: Literal["ready"]
    snapshot_id: int
    staleness_s: float


_PROBLEMS = {
    400: "The request cannot be read.",
    401: "No token, or one that is not valid.",
    403: "Without tokens only this machine may ask.",
    404: "Unknown, or not yours to see.",
    406: "No form that was asked for is offered.",
    408: "The request did not come in time.",
    413: "The request is too large.",
    422: "A parameter is wrong.",
    429: "Too many wrong tokens, or more than the caller's share.",
    500: "The server failed.",
    503: "Nothing is published yet, the store does not answer, the newest snapshot is old, too "
    "much is open, or the server is ending.",
}


def answer_shapes(
    shape: type[BaseModel] | None,
    content: dict[str, Any] | None = None,
    *,
    has_304: bool = True,
    headers: Mapping[str, str] | None = None,
    further: Mapping[int, str] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """Return the answers of an operation, as FastAPI takes them.

    Args:
        shape: of the body of 200 in JSON; None if it has no JSON.
        content: other forms of 200, by media type.
        has_304: the caller may have it already.
        headers: of 200, and what they say.
        further: problems beside those that every path may answer, by status.
    """
    by_status: dict[int | str, dict[str, Any]] = {200: {"description": "The answer."}}
    if shape is not None:
        by_status[200]["model"] = shape
    if content:
        by_status[200]["content"] = content
    if headers:
        by_status[200]["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in headers.items()
        }
    if has_304:
        by_status[304] = {"description": "You have it already."}
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for status, text in sorted({**_PROBLEMS, **(further or {})}.items()):
        by_status[status] = {"description": text, "content": {"application/problem+json": schema}}
    return by_status
