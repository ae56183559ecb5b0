"""Decides from the new rows alone whether a data test of dbt's own that passed still passes.

Used by the proofs: one predicate per kind of test. True: it passes. False: it may, or it may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT
from livemart.delta.row_filter import equal_in, narrows
from livemart.project.graph import DataTest
from livemart.spark_sql import stored_name, unquoted

# Reads the table at the version that is tested, in part; see `Warehouse.read`.
Read = Callable[..., pa.Table]

# Above this a test in full is cheaper than a look-up of the changed keys.
_MOST_KEYS = 20_000
_ESCAPED = re.compile(r"[\\']")
_COMBINATIONS = ("unique_combination", "unique_combination_of_columns")


def _is_not_null(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    name = _column(test.column_name, new_rows)
    return name is not None and new_rows[name].null_count == 0


def _is_accepted(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    name = _column(test.column_name, new_rows)
    values = test.arguments.get("values")
    if name is None or not isinstance(values, list | tuple):
        return False
    values_that_came = pc.unique(new_rows[name]).drop_null()
    # Other types are compared as Spark casts them: leave that to Spark.
    if pa.types.is_string(values_that_came.type) or pa.types.is_large_string(values_that_came.type):
        accepted = {str(value) for value in values}
        # dbt writes them into its SQL unchanged: without quotes they are expressions, and between
        # quotes Spark reads a backslash as the beginning of another character.
        if test.arguments.get("quote", True) is not True or any(map(_ESCAPED.search, accepted)):
            return False
    elif pa.types.is_integer(values_that_came.type) and all(type(value) is int for value in values):
        accepted = set(values)
    else:
        return False
    return all(value in accepted for value in values_that_came.to_pylist())


def _are_keys_single(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    """Return True if each key among the new rows occurs once in the table as it is now."""
    names = [_column(name, new_rows) for name in columns_unique_together(test)]
    if not names or None in names:
        return False
    keys = [name for name in names if name is not None]
    if test.kind == "unique":
        new_rows = new_rows.filter(pc.is_valid(new_rows[keys[0]]))
    if new_rows.num_rows == 0:
        return True
    if new_rows.num_rows > _MOST_KEYS or pc.max(new_rows[WEIGHT]).as_py() > 1:
        return False
    if any(new_rows[name].null_count or not narrows(new_rows[name].type) for name in keys):
        # Arrow never joins NULL keys, and tells -0.0 from 0.0: leave them to Spark.
        return False
    try:
        changed_keys = new_rows.select(keys).group_by(keys).aggregate([])
        if changed_keys.num_rows < new_rows.num_rows:
            return False
        passing = equal_in(changed_keys.schema, changed_keys).expression()
        stored = read(columns=keys, filter=passing)
        matching = stored.join(changed_keys, keys, join_type="left semi")
        return bool(matching.group_by(keys).aggregate([]).num_rows == matching.num_rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A key of a type that Arrow does not group or join by.
        return False


def columns_unique_together(test: DataTest) -> tuple[str, ...]:
    """Return the columns that a test requires to be unique together; none for another test."""
    if test.kind == "unique":
        return (unquoted(test.column_name or ""),)
    if test.kind in _COMBINATIONS:
        for name in ("columns", "combination_of_columns", "column_names"):
            columns = test.arguments.get(name)
            if isinstance(columns, list | tuple):
                return tuple(unquoted(str(column)) for column in columns)
    return ()


def _column(name: str | None, table: pa.Table) -> str | None:
    """Return the table's spelling of a column that a test names, None if it is an expression."""
    return stored_name(unquoted(name or ""), table.column_names)


SHOWN_BY_NEW_ROWS: Mapping[str, Callable[[DataTest, pa.Table, Read], bool]] = {
    "not_null": _is_not_null,
    "accepted_values": _is_accepted,
    "unique": _are_keys_single,
    "unique_combination": _are_keys_single,
    "unique_combination_of_columns": _are_keys_single,
}
# Tests of each value by itself: a copy of the column in another table is as good.
OF_VALUES = frozenset({"not_null", "accepted_values"})
