"""Values of any type as GROUP BY and `<=>` take them: maps become their sorted entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livemart.spark_sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


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
