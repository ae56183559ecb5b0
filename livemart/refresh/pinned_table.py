"""Gives a table at one version, the same for as long as a batch lasts.

Used wherever a refresh reads stored rows. A column is found as Spark finds it: letter case aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from livemart.delta.partitions import blank_columns
from livemart.delta.row_filter import RowFilter
from livemart.delta.warehouse import Warehouse
from livemart.plan.reasons import refusal
from livemart.spark_sql import stored_name

_Answer = TypeVar("_Answer")


@dataclass(unsafe_hash=True)
class PinnedTable:
    """A table at one version, opened once; `hidden` columns are read as if it had none.

    `relation`: `schema.identifier`; `hidden`: names in lower case. These are about the other
    columns:
    `schema`, plain; `names`, as the table spells them; `fields`; `blank_columns`, in which it holds
    NULL for some texts (see delta/partitions). `sql`: how Spark names the table at this version.

    Raises:
        RefreshError: TABLE_MISSING, VERSION_GONE.
    """

    warehouse: Warehouse
    relation: str
    version: int
    hidden: frozenset[str] = frozenset()
    schema: pa.Schema = field(init=False, compare=False)
    names: ByName[str] = field(init=False, compare=False)
    fields: ByName[pa.Field] = field(init=False, compare=False)
    blank_columns: frozenset[str] = field(init=False, compare=False)
    sql: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self._files = files = self.warehouse.files(self.relation, self.version)
        visible = [field for field in files.schema if field.name.lower() not in self.hidden]
        self.schema = pa.schema(visible)
        self.names = ByName((field.name, field.name) for field in visible)
        self.fields = ByName((field.name, field) for field in visible)
        self.blank_columns = blank_columns(
            self.schema,
            [name for name in files.partition_columns if name.lower() not in self.hidden],
        )
        self.sql = self.warehouse.sql_at(self.relation, self.version)

    def without(self, names: Iterable[str]) -> PinnedTable:
        """Return the table as if it had not these columns."""
        hidden = frozenset(name.lower() for name in names)
        return PinnedTable(self.warehouse, self.relation, self.version, hidden)

    @property
    def is_plain(self) -> bool:
        """False if only a usual session of Spark can read it."""
        return self._files.is_plain

    @cached_property
    def row_count(self) -> int:
        return self._files.row_count

    def read(self, rows: RowFilter, columns: Iterable[str] | None = None) -> pa.Table:
        """Return the rows that pass a filter; only some columns, if fewer are enough."""
        names = None if columns is None else list(columns)
        if names is None and self.hidden:
            names = self.schema.names
        return self._files.read(names, rows)


class ByName(dict[str, _Answer]):
    """An answer for each column, found as Spark finds it: letter case aside.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, if a column is asked for that is not stored.
    """

    def __missing__(self, name: str) -> _Answer:
        if (stored := stored_name(name, self)) is not None:
            return self[stored]
        message = f"column {name} is not stored"
        raise refusal("PARSE_UNSUPPORTED", message)
