"""Turns fields that a source does not declare into columns, where its policy lets the table evolve.

Used by each micro-batch. Fields that cannot become a column stay rescued, so no value is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from livemart.land.records.schema import RESCUED_TYPE
from livemart.project.declared_columns import is_storable
from livemart.project.landing_columns import RESCUED


def new_columns(fields: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return which rescued fields can become columns, in order of name.

    Fields of nested structs stay rescued. So do names that no table of Delta takes, that begin with
    an underscore (landing's own columns do), or that Spark could not tell from a known column.

    >>> new_columns(["note", "items[0].note", "Status", "_landed_at"], ["order_id", "status"])
    ['note']
    """
    names = {name.lower() for name in columns}
    added = []
    for name in sorted(set(fields)):
        # A path of a field within a column, or of a name in backticks.
        is_ours_or_path = name.startswith(("_", "`")) or "." in name or "[" in name
        if is_storable(name) and not is_ours_or_path and name.lower() not in names:
            added.append(name)
            names.add(name.lower())
    return added


def rescued_fields(rows: pa.Table) -> list[str]:
    """Return the paths of all rescued fields, once each."""
    column = rows.column(RESCUED)
    if column.null_count == len(column):
        return []
    names: set[str] = set()
    for chunk in column.chunks:
        names.update(pc.unique(pc.drop_null(chunk).keys).to_pylist())
    return sorted(names)


def adopt(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the rows with rescued fields moved to separate string columns."""
    if not columns:
        return rows
    rescued = [dict(fields) if fields else {} for fields in rows.column(RESCUED).to_pylist()]
    for name in columns:
        values = [fields.pop(name, None) for fields in rescued]
        rows = rows.append_column(name, pa.array(values, pa.string()))
    left = pa.array([sorted(fields.items()) or None for fields in rescued], RESCUED_TYPE)
    return rows.set_column(rows.schema.get_field_index(RESCUED), RESCUED, left)
