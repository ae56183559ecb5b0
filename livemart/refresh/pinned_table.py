"""Gives a table at one version, the same for as long as a batch lasts.

Used wherever a refresh reads stored rows. A column is found as Spark finds it: letter case aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from livemart.delta.partitions import blank_columns
from livemart.delta.row_filter import RowFilter
from livemart.delta.warehouse import Warehouse
from livemart.plan.reasons import refusal
from livemart.spark_sql import stored_name

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class PinnedTable:
    """A table at one version; `hidden` columns, in lower case, are read as if it had none."""

    warehouse: Warehouse
    relation: str
    version: int
    hidden: frozenset[str] = frozenset()

    @cached_property
    def schema(self) -> pa.Schema:
        schema = self.warehouse.arrow_schema(self.relation, self.version)
        return pa.schema([field for field in schema if field.name.lower() not in self.hidden])

    def without(self, names: Iterable[str]) -> PinnedTable:
        """Return the table as if it had not these columns."""
        return replace(self, hidden=frozenset(name.lower() for name in names))

    @cached_property
    def blank_columns(self) -> frozenset[str]:
        """Columns in which the table holds NULL for some texts (see delta/partitions)."""
        partition_columns = self.warehouse.files(self.relation, self.version).partition_columns
        visible = [name for name in partition_columns if name.lower() not in self.hidden]
        return blank_columns(self.schema, visible)

    @property
    def row_count(self) -> int:
        return self.warehouse.row_count(self.relation, self.version)

    @property
    def sql(self) -> str:
        """How Spark names the table at this version."""
        return self.warehouse.sql_at(self.relation, self.version)

    @cached_property
    def names(self) -> ByName[str]:
        """How the table spells the names of its columns."""
        return ByName((name, name) for name in self.schema.names)

    @cached_property
    def fields(self) -> ByName[pa.Field]:
        """The columns."""
        return ByName((field.name, field) for field in self.schema)

    def read(self, rows: RowFilter, columns: Iterable[str] | None = None) -> pa.Table:
        """Return the rows that pass a filter; only some columns, if fewer are enough."""
        names = None if columns is None else list(columns)
        if names is None and self.hidden:
            names = self.schema.names
        return self.warehouse.read(
            self.relation, self.version, columns=names, filter=None if rows.is_whole else rows
        )


class ByName(dict[str, _Answer]):
    """What is said of each column, found as Spark finds it: letter case aside.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, if a column is asked for that is not stored.
    """

    def __missing__(self, name: str) -> _Answer:
        if (stored := stored_name(name, self)) is not None:
            return self[stored]
        message = f"column {name} is not stored"
        raise refusal("PARSE_UNSUPPORTED", message)
