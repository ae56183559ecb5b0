"""What the serving store holds, in the words that publisher, reader and API share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Op = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Published:
    """A publication of a snapshot as the store shows it; times are UTC.

    `published_at` tells two publications of one snapshot apart: a mended store, another exposure.
    `checked_at` is when the snapshot was last known to be the newest; it may rise without any other
    change, so it is no part of what a publication is.
    """

    snapshot_id: int
    as_of: datetime | None
    published_at: datetime
    epoch: str
    checked_at: datetime = field(compare=False)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as it is stored.

    `columns`: name and kind (string, bigint, int, double, boolean, date, timestamp, decimal(p,s),
    json, binary), in the model's order. `row_key`: empty if rows may repeat. `time_column`: what a
    time filter is about unless another column is named; None if the model has no such column.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    row_key: tuple[str, ...]
    tenant_column: str | None
    time_column: str | None = None

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column, by name."""
        return dict(self.columns)


@dataclass(frozen=True, slots=True)
class Change:
    """One row that came, changed or went with a snapshot; `row` holds JSON values."""

    model: str
    snapshot_id: int
    position: int
    op: Op
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes of whole snapshots, in order, up to and including snapshot `upto` of `epoch`.

    `reset`: the changes since the position asked for are not known; read all rows instead.
    `mark_before` and `mark` say which history the positions before and behind the page belong to.
    """

    kind: Literal["changes", "reset"]
    changes: tuple[Change, ...]
    upto: int
    epoch: str
    mark_before: str
    mark: str
