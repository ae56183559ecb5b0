"""Gives a table at one version, the same for as long as a batch lasts.

Used wherever a refresh reads stored rows. A column is found as Spark finds it: letter case aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pyarrow as pa

from livemart.delta.partitions import blank_columns
from livemart.delta.row_filter import RowFilter
from livemart.delta.warehouse import Warehouse
from livemart.plan.reasons import refusal
from livemart.spark_sql import stored_name

_Answer = TypeVar("_Answer")


class PinnedTable:
    """A table at one version, opened once; `hidden` columns are read as if it had none.

    Attributes:
        relation: `schema.identifier`.
        version: of the table.
        hidden: names of columns in lower case.
        schema: plain Arrow schema of the other columns.
        names: how the table spells them.
        fields: of them.
        blank_columns: those in which the table holds NULL for some texts (see delta/partitions).

    Raises:
        RefreshError: TABLE_MISSING, VERSION_GONE.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        relation: str,
        version: int,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._files = files = warehouse.files(relation, version)
        self.warehouse, self.relation, self.version = warehouse, relation, version
        self.hidden = hidden
        self._key = (warehouse, relation, version, hidden)
        visible = [field for field in files.schema if field.name.lower() not in hidden]
        self.schema = pa.schema(visible)
        self.names = ByName((field.name, field.name) for field in visible)
        self.fields = ByName((field.name, field) for field in visible)
        self.blank_columns = blank_columns(
            self.schema, [name for name in files.partition_columns if name.lower() not in hidden]
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PinnedTable) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def without(self, names: Iterable[str]) -> PinnedTable:
        """Return the table as if it had not these columns."""
        hidden = frozenset(name.lower() for name in names)
        return PinnedTable(self.warehouse, self.relation, self.version, hidden)

    @property
    def sql(self) -> str:
        """How Spark names the table at this version."""
        return self.warehouse.sql_at(self.relation, self.version)

    @property
    def row_count(self) -> int:
        return self._files.row_count

    def read(self, rows: RowFilter, columns: Iterable[str] | None = None) -> pa.Table:
        """Return the rows that pass a filter; only some columns, if fewer are enough."""
        names = None if columns is None else list(columns)
        if names is None and self.hidden:
            names = self.schema.names
        return self._files.read(names, rows)


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
