"""Differences of bags in SQL: only rows that really changed reach a commit."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from livemart.engine.arrow_types import spark_schema
from livemart.engine.tables import NEW_COUNT, OLD_COUNT


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def typed_columns(schema: pa.Schema, qualifier: str) -> str:
    """Return a select list of the table's columns, cast to its types, in its order."""
    fields = spark_schema(schema).fields
    return ", ".join(
        f"cast({qualifier}.{quoted(field.name)} as {field.dataType.simpleString()})"
        f" as {quoted(field.name)}"
        for field in fields
    )


def counted_difference(schema: pa.Schema, sides: Sequence[tuple[str, int, int]]) -> str:
    """Return SQL for the rows whose multiplicity differs.

    Args:
        schema: columns of the table.
        sides: (query, count in the old bag, count in the new bag) of each of its rows; the query
            yields the columns of the table, in order.

    Returns:
        The columns plus `_old_count` and `_new_count` (bigint); one row per distinct changed row.
    """
    stacked = " union all ".join(
        f"select *, cast({old} as bigint) as {OLD_COUNT}, cast({new} as bigint) as {NEW_COUNT}"
        f" from ({query})"
        for query, old, new in sides
    )
    selected, groups = grouped_columns(schema)
    return (
        f"select {', '.join(selected)}, sum({OLD_COUNT}) as {OLD_COUNT},"
        f" sum({NEW_COUNT}) as {NEW_COUNT} from ({stacked})"
        f" group by {', '.join(groups)} having sum({OLD_COUNT}) <> sum({NEW_COUNT})"
    )


def grouped_columns(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Return select list and GROUP BY keys that gather equal rows of a table.

    Maps cannot be grouped: their sorted entries can, and stand for them.
    """
    selected, groups = [], []
    for field in schema:
        name = quoted(field.name)
        if not contains_map(field.type):
            selected.append(name)
            groups.append(name)
            continue
        is_map = pa.types.is_map(field.type)
        groups.append(f"array_sort(map_entries({name}))" if is_map else f"to_json({name})")
        selected.append(f"any_value({name}) as {name}")
    return selected, groups


def contains_map(kind: pa.DataType) -> bool:
    """Return True if a value of the type holds a map anywhere."""
    if pa.types.is_map(kind):
        return True
    if pa.types.is_struct(kind):
        return any(contains_map(field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return contains_map(kind.value_type)
    return False
