"""Schemas of inputs: whether a model's own columns may follow from a change of what it reads.

A column that came or changed its type is no change of rows: added to every row as NULL, or cast, it
nets to nothing. So the schemas of both versions are compared, wherever a commit between them could
have changed them.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from livemart.delta.log import LogEntry
from livemart.errors import RefreshError
from livemart.plan.reasons import Reason, Unplannable
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse
from livemart.refresh.model_run import BatchInputs


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
