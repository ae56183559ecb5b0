"""Writes the difference of rows as SQL text.

Used by both lanes and by `verify`. Only rows that really changed reach a commit; equal is what
Spark's GROUP BY and `<=>` call equal, and maps, which it cannot group, are their sorted entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.partitions import BLANKS
from livemart.plan.sql.template import Template, separated, template
from livemart.spark.types import spark_schema, spelled_columns
from livemart.spark_sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import DataType

_Hole = TypeVar("_Hole")


def typed_columns(schema: pa.Schema, blank_columns: frozenset[str] = frozenset()) -> str:
    """Return a select list of the table's columns, of rows `q`, cast to its types, in its order.

    Args:
        blank_columns: those in which the table holds NULL for some texts.
    """
    selected = []
    for name, column, kind in spelled_columns(schema):
        value = f"cast(q.{column} as {kind})"
        if name in blank_columns:
            value = f"if({value} in ({', '.join(map(literal, BLANKS))}), null, {value})"
        selected.append(f"{value} as {column}")
    return ", ".join(selected)


def row_of_literals(rows: pa.Table) -> str | None:
    """Return the subquery that is one row of times and whole numbers; None for other rows."""
    if rows.num_rows != 1:
        return None
    selected = []
    for field, column in zip(spark_schema(rows.schema).fields, rows.columns, strict=True):
        spelled_out = _scalar_literal(column[0], field.dataType.simpleString())
        if spelled_out is None:
            return None
        selected.append(f"{spelled_out} as {quoted(field.name)}")
    return f"(select {', '.join(selected)})"


def _scalar_literal(value: pa.Scalar, kind: str) -> str | None:
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(value.type):
        if value.type.tz is None:
            # Not by way of an instant, which the session reads by its own clock; None for a year
            # that Python has no date for.
            with suppress(OverflowError, ValueError):
                return literal(value.as_py())
            return None
        return f"cast(timestamp_micros({value.cast(pa.int64()).as_py()}) as {kind})"
    if pa.types.is_date32(value.type):
        return f"date_from_unix_date({value.cast(pa.int32()).as_py()})"
    if pa.types.is_integer(value.type):
        return f"cast({value.as_py()} as {kind})"
    return None


def counted_difference(
    schema: pa.Schema, sides: Sequence[tuple[str | Template[_Hole], int, int]]
) -> Template[_Hole]:
    """Return SQL for the rows whose multiplicity differs.

    Args:
        sides: (query, count in the old bag, count in the new bag) of each of its rows; the query
            yields the columns of the table, in order.

    Returns:
        The columns plus `OLD_COUNT` and `NEW_COUNT` (bigint); one row per distinct changed row.
    """
    counted = [
        template(
            f"select *, cast({old} as bigint) as {OLD_COUNT}, cast({new} as bigint) as {NEW_COUNT}"
            " from (",
            query,
            ")",
        )
        for query, old, new in sides
    ]
    selected, groups = grouped_columns(schema)
    return template(
        f"select {', '.join(selected)}, sum({OLD_COUNT}) as {OLD_COUNT},"
        f" sum({NEW_COUNT}) as {NEW_COUNT} from (",
        separated(" union all ", counted),
        f") group by {', '.join(groups)} having sum({OLD_COUNT}) <> sum({NEW_COUNT})",
    )


def grouped_columns(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Return select list and GROUP BY keys that gather equal rows of a table.

    Maps cannot be grouped: what compares like them stands for them.
    """
    selected, groups = [], []
    for field in spark_schema(schema).fields:
        name = quoted(field.name)
        group = comparable(name, field.dataType)
        groups.append(group)
        selected.append(name if group == name else f"any_value({name}) as {name}")
    return selected, groups


def is_about_distinct(error: AnalysisException) -> bool:
    """Return True for what Spark says of DISTINCT over maps and variants."""
    return "SET_OPERATION_ON" in (error.getCondition() or "")


def comparable(name: str, kind: DataType, depth: int = 0) -> str:
    """Return SQL, fit for GROUP BY, for a value of any type; equal if and only if the value is."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    variable = f"x{depth}"
    if not _holds_map(kind):
        return name
    if isinstance(kind, MapType):
        key = comparable(f"{variable}.key", kind.keyType, depth + 1)
        value = comparable(f"{variable}.value", kind.valueType, depth + 1)
        entry = f"named_struct('key', {key}, 'value', {value})"
        return f"array_sort(transform(map_entries({name}), {variable} -> {entry}))"
    if isinstance(kind, ArrayType):
        element = comparable(variable, kind.elementType, depth + 1)
        return f"transform({name}, {variable} -> {element})"
    if isinstance(kind, StructType):
        parts = ", ".join(
            f"{literal(field.name)}, "
            f"{comparable(f'{name}.{quoted(field.name)}', field.dataType, depth + 1)}"
            for field in kind.fields
        )
        return f"if({name} is null, null, named_struct({parts}))"
    return f"to_json({name})"


def _holds_map(kind: DataType) -> bool:
    """Return True if a value of the type holds a map or a variant anywhere."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return _holds_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or kind.simpleString() == "variant"
