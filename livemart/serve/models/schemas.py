"""Describes the bodies about served models, for the OpenAPI document.

Used by the routes of `models`; tests hold the bodies to it.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from typing_extensions import TypeAliasType

from livemart.serve.http.schemas import OfModel, Shape, SnapshotHead


class ColumnBody(Shape, title="Column"):
    """A column of a served model."""

    name: str
    type: str = Field(
        description="string, int, bigint (beyond 2^53 written as a string), float (32 bits), "
        "double, boolean, date, timestamp, timestamp_ntz (names no zone), decimal(p,s) (a string), "
        "json or binary (a base64 string)"
    )


class ModelBody(OfModel, title="Model"):
    """A served model."""

    name: str
    columns: list[ColumnBody]
    key: list[str] = Field(description="Columns of the row key; empty if there is none.")
    tenant_column: str | None


class Models(SnapshotHead):
    """The served models that a caller may read."""

    models: list[ModelBody]


ModelRow = TypeAliasType("ModelRow", dict[str, Any])


class Rows(SnapshotHead, OfModel):
    """Rows of a served model."""

    model: str
    window: None = Field(default=None, description="A model has rows, not a window.")
    rows: list[ModelRow]
    next: str | None = Field(
        description="Sent back as `after` for the rows behind these; null if none are left out."
    )
    is_truncated: bool = Field(description="True if `limit` left rows out.")
