"""Schemas of inputs: whether a model's own columns may follow from a change of what it reads.

A column that came or changed its type is no change of rows: added to every row as NULL, or cast, it
nets to nothing. So the schemas of both versions are compared, wherever a commit between them could
have changed them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

from livemart.delta.log import LogEntry
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.plan.reasons import Reason, Unplannable
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse


class Tables(Protocol):
    """What is asked of the warehouse here."""

    def arrow_schema(self, relation: str, version: int | None = None) -> pa.Schema: ...
    def data_changed_between(self, relation: str, v0: int, v1: int) -> list[LogEntry | None]: ...


class InputSchemas:
    """What became of the columns of every input since the frontier; asked once per relation."""

    def __init__(self, tables: Tables, inputs: BatchInputs) -> None:
        self._tables = tables
        self._inputs = inputs
        self._found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def changed(self, flat: Flat) -> Reason | None:
        """Return why a query may yield other columns than at the frontier, None if it cannot."""
        every_column: bool | None = None
        for relation in flat.relations:
            retyped, named = self._differing(relation)
            if retyped:
                return _reason(relation, retyped)
            if named:
                if every_column is None:
                    every_column = reads_every_column(flat)
                if every_column:
                    return _reason(relation, named)
        return None

    def _differing(self, relation: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the columns with another type, and those that came or went."""
        if relation not in self._found:
            self._found[relation] = self._compare(relation)
        return self._found[relation]

    def _compare(self, relation: str) -> tuple[frozenset[str], frozenset[str]]:
        old, new = self._inputs.old.get(relation), self._inputs.new.get(relation)
        same = frozenset[str](), frozenset[str]()
        if old is None or new is None or old >= new:
            return same
        try:
            commits = self._tables.data_changed_between(relation, old, new)
            if not any(commit is None or commit.table_id is not None for commit in commits):
                return same
            before, now = (self._tables.arrow_schema(relation, version) for version in (old, new))
        except RefreshError as error:
            if error.code not in ("TABLE_MISSING", "VERSION_GONE"):
                raise
            # The change of its rows cannot be read either: its readers are recomputed anyway.
            return same
        types, found = ({field.name: field.type for field in each} for each in (before, now))
        retyped = {name for name in types.keys() & found.keys() if types[name] != found[name]}
        return frozenset(retyped), frozenset(types.keys() ^ found.keys())


def reads_every_column(flat: Flat) -> bool:
    """Return True if the columns of an input decide which ones the query has."""
    try:
        tree = parse(flat.text)
    except Unplannable:
        return True
    if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    return any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))


def _reason(relation: str, names: frozenset[str]) -> Reason:
    listed = ", ".join(sorted(names))
    return Reason("FINGERPRINT_CHANGED", f"columns of {relation} changed: {listed}", None)


__all__ = ["InputSchemas", "reads_every_column"]


Side = Literal["old", "new"]


class FallBack(Exception):
    """The planned strategy cannot be used in this batch; the model is recomputed in full."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code)
        self.reason = reason


@dataclass(slots=True)
class BatchInputs:
    """The versions of every table before and in this batch, by relation."""

    warehouse: Warehouse
    old: Mapping[str, int]
    new: dict[str, int]
    _empty: dict[str, bool] = field(default_factory=dict)
    _values: dict[tuple[str, int, str], object] = field(default_factory=dict)

    def one_value(self, relation: str, version: int, name: str) -> object:
        """Return the value of a column of a table of one row; models share what was read.

        Raises:
            FallBack: CLOCK_NOT_ONE_ROW.
        """
        key = (relation, version, name)
        if key not in self._values:
            rows = self.warehouse.read(relation, version, columns=[name])
            if rows.num_rows != 1:
                raise FallBack(
                    Reason("CLOCK_NOT_ONE_ROW", f"{relation} has {rows.num_rows} rows", None)
                )
            self._values[key] = rows.column(0)[0].as_py()
        return self._values[key]

    def has_changed(self, relation: str) -> bool:
        """Return True if the table's rows differ between the frontier and this batch."""
        if self.old.get(relation) == self.new[relation]:
            return False
        if relation not in self._empty:
            self._empty[relation] = self.changes(relation).num_rows == 0
        return not self._empty[relation]

    def changes(self, relation: str) -> pa.Table:
        """Return the net change since the frontier: columns of the table plus `_weight`.

        Raises:
            RefreshError: CDF_UNAVAILABLE.
        """
        return self.warehouse.changes(relation, self.old[relation], self.new[relation])


def stored_field(schema: pa.Schema, name: str) -> pa.Field:
    """Return a field by name, letter case aside, as Spark resolves it."""
    for field_ in schema:
        if field_.name.lower() == name.lower():
            return field_
    raise FallBack(Reason("PARSE_UNSUPPORTED", f"column {name} is not stored", None))
