"""Defines the contents of the serving store: publications, models, descriptions and pages, changes.

Used by publisher, readers and the server, so that all three mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from livemart.project.declared.model_page import PageSpec

Op = Literal["insert", "update", "delete"]
PublicationId = tuple[str, int, datetime]


@dataclass(frozen=True, slots=True)
class Published:
    """A publication of a snapshot as the store shows it; times are UTC.

    Its mappings name a served model by its name, any other model by its unique id.
    """

    snapshot_id: int
    as_of: datetime | None
    published_at: datetime
    """Tells two publications of one snapshot apart: a mended store, another exposure."""
    epoch: str
    checked_at: datetime = field(compare=False)
    """When the snapshot was last known to be the newest; it may rise without any other change."""
    set_aside: Mapping[str, Sequence[Any]] | None = field(default=None, compare=False)
    """The models whose rows are those of an earlier snapshot, with two or three values each.

    They are the snapshot since which it is so; when the earlier one was finished (ISO 8601, None if
    never); and, if the store does not take the model, why.
    """
    strategy_failures: Mapping[str, int] | None = field(default=None, compare=False)
    """How many published snapshots had to recompute a model for an error of ours."""

    @property
    def identity(self) -> PublicationId:
        """The values that distinguish two publications; ids begin again with another epoch."""
        return self.epoch, self.snapshot_id, self.published_at

    def refreshed_at(self, model: str) -> tuple[int, datetime | None] | None:
        """Return since when a model is set aside, and how old its rows are; None if it is not."""
        if self.set_aside is None or (aside := self.set_aside.get(model)) is None:
            return None
        since, text = aside[:2]
        return since, None if text is None else datetime.fromisoformat(text)

    @property
    def refused(self) -> Mapping[str, str]:
        """Why the store does not take a model, by model."""
        return {name: aside[2] for name, aside in (self.set_aside or {}).items() if len(aside) > 2}

    def is_later_than(self, other: Published) -> bool:
        """Return True if both are of one epoch and this snapshot came after the other.

        Two publications of one snapshot have no order: the clock may have been set back.
        """
        return self.epoch == other.epoch and self.snapshot_id > other.snapshot_id

    def is_same_or_later(self, other: Published) -> bool:
        """Return True if both are of one epoch and this one did not come before the other."""
        return self == other or self.is_later_than(other)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as it is stored.

    `columns`: name and kind (string, bigint, int, float, double, boolean, date, timestamp,
    timestamp_ntz, decimal(p,s), json, binary), in the model's order. `row_key`: empty if rows may
    repeat. `time_column`: the column of a time filter that names none; None if the model has no
    such column.
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
class DescribedTest:
    """A data test of a model.

    `kind`: the name of a generic test, None for one that is written as SQL. `column`: None for a
    test of the whole model. `outcome`: in the snapshot, as dbt names it; None if it has none.
    """

    name: str
    kind: str | None
    column: str | None
    severity: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model in the words of its project.

    `columns`: descriptions by name; columns without one are left out. `sql` is as the author wrote
    it, `compiled_sql` as dbt compiled it; a seed has neither.
    """

    text: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[DescribedTest, ...] = ()
    sql: str = ""
    compiled_sql: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One row that a snapshot added, changed or removed; `row` holds JSON values."""

    model: str
    snapshot_id: int
    position: int
    op: Op
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes of whole snapshots, in order, up to and including snapshot `upto` of `epoch`.

    `reset`: the changes since the position asked for are not known; read all rows instead. `many`:
    there are more than may be read, and none was. `read`: how many changes were judged by the
    conditions. `mark_before` and `mark` name the histories of the positions before and behind the
    page.
    """

    kind: Literal["changes", "reset", "many"]
    changes: tuple[Change, ...]
    read: int
    upto: int
    epoch: str
    mark_before: str
    mark: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of several models, an exposure of type `dashboard`.

    `title` is the exposure's label, or its name; `models`: served ones, in the exposure's order.
    """

    title: str
    text: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectPages:
    """How pages look, by the name of a served model, and the dashboards by name."""

    models: Mapping[str, PageSpec] = field(default_factory=dict)
    dashboards: Mapping[str, Dashboard] = field(default_factory=dict)


NO_PAGES = ProjectPages()
