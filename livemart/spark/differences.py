"""Writes the difference of rows as SQL text.

Used by both lanes and by `verify`. Only rows that really changed reach a commit. Spark's GROUP BY
and `<=>` ask for equal values; those that are asked for identical ones (ADR-0013) get more keys.
Spark cannot compare maps, which are their entries, and variants, which are their JSON and type.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.partitions import BLANKS
from livemart.plan.sql.template import Template, separated, template
from livemart.spark.types import parts_of_type, spark_schema, spelled_columns
from livemart.spark_sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import DataType

_Hole = TypeVar("_Hole")
_FLOATS = ("double", "float")
_TIMES = ("date", "timestamp", "timestamp_ntz")


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
        The columns plus `OLD_COUNT` and `NEW_COUNT` (bigint); one row for all that are identical.
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
    """Return select list and GROUP BY keys that gather identical rows of a table.

    As a separate key, GROUP BY gives 0.0 for -0.0, and a map with its entries in order. Maps and
    variants cannot be grouped: a value that compares like them stands for them.
    """
    selected, groups = [], []
    for field in spark_schema(schema).fields:
        name = quoted(field.name)
        keys = identity(name, field.dataType)
        groups += keys
        selected.append(name if keys == [name] else f"any_value({name}) as {name}")
    return selected, groups


def identity(name: str, kind: DataType) -> list[str]:
    """Return SQL, fit for GROUP BY and `<=>`; all of it is equal iff the values are identical."""
    keys = [comparable(name, kind, in_order=True)]
    if holds_float(kind):
        keys.append(signs_of_zeros(name, kind))
    return keys


def signs_of_zeros(name: str, kind: DataType) -> str:
    """Return SQL that distinguishes values which are equal but for the signs of zeros.

    The texts of equal values, whatever their other parts, differ there alone.
    """
    if kind.simpleString() in _FLOATS:
        # Most values are not zero: their text would cost more than to compare them.
        return f"if({name} = 0, cast({name} as string) = '-0.0', false)"
    return f"cast({name} as string)"


def is_about_distinct(error: AnalysisException) -> bool:
    """Return True for Spark's error about DISTINCT over maps and variants."""
    return "SET_OPERATION_ON" in (error.getCondition() or "")


def comparable(name: str, kind: DataType, depth: int = 0, *, in_order: bool = False) -> str:
    """Return SQL, fit for GROUP BY, for a value of any type; equal if and only if the value is.

    `in_order`: maps with their entries in another order are not equal.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    variable = f"x{depth}"
    if not holds_map(kind):
        return name
    if isinstance(kind, MapType):
        key = comparable(f"{variable}.key", kind.keyType, depth + 1, in_order=in_order)
        value = comparable(f"{variable}.value", kind.valueType, depth + 1, in_order=in_order)
        entry = f"named_struct('key', {key}, 'value', {value})"
        entries = f"transform(map_entries({name}), {variable} -> {entry})"
        return entries if in_order else f"array_sort({entries})"
    if isinstance(kind, ArrayType):
        element = comparable(variable, kind.elementType, depth + 1, in_order=in_order)
        return f"transform({name}, {variable} -> {element})"
    if isinstance(kind, StructType):
        fields = [
            (
                literal(field.name),
                comparable(
                    f"{name}.{quoted(field.name)}", field.dataType, depth + 1, in_order=in_order
                ),
            )
            for field in kind.fields
        ]
        parts = ", ".join(f"{label}, {value}" for label, value in fields)
        return f"if({name} is null, null, named_struct({parts}))"
    # Neither alone: the text of 1 is that of a decimal, too, and that of a date is a text.
    return f"named_struct('json', to_json({name}), 'type', schema_of_variant({name}))"


def holds_float(kind: DataType) -> bool:
    """Return True if a value of the type is, or holds anywhere, a double or a float."""
    return any(part.simpleString() in _FLOATS for part in parts_of_type(kind))


def has_time(kind: DataType) -> bool:
    """Return True if a value of the type is, or holds anywhere, a date or a timestamp."""
    return any(part.simpleString() in _TIMES for part in parts_of_type(kind))


def holds_map(kind: DataType) -> bool:
    """Return True if a value of the type holds a map or a variant anywhere."""
    from pyspark.sql.types import MapType

    return any(
        isinstance(part, MapType) or part.simpleString() == "variant"
        for part in parts_of_type(kind)
    )
