"""Converts rows to Python objects, for values of every type.

Used by `verify`, `diff` and `corrections`. Arrow's own `to_pylist` raises an error at a time
outside of the years 1 to 9999, which Spark and Parquet hold, and gives the bytes of a VARIANT. It
also gives a FLOAT the digits of a double.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from livemart.arrow.single_floats import shortest_double, shortest_doubles
from livemart.arrow.variant_values import python_value
from livemart.arrow.variants import holds_type, holds_variant, is_variant


def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Return each row by name of column; a time that Python cannot hold is its text.

    A FLOAT is the double of its shortest decimal, as it is served.
    """
    return [dict(zip(rows.column_names, row, strict=True)) for row in python_tuples(rows)]


def python_tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Return the values of each row in the order of the columns, as `python_rows` does."""
    return list(zip(*map(_values, rows.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_float32(column.type):
        column = shortest_doubles(column)
    if not holds_variant(column.type) and not holds_type(column.type, pa.types.is_float32):
        with suppress(OverflowError, ValueError):
            return list(column.to_pylist())
    return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if is_variant(kind):
        parts = scalar.value.as_py()
        return python_value(parts["value"], parts["metadata"])
    if pa.types.is_float32(kind):
        return shortest_double(scalar.as_py())
    if pa.types.is_struct(kind):
        return {field.name: _value(scalar[place]) for place, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(_value(entry[0]), _value(entry[1])) for entry in scalar.values]
    if pa.types.is_list(kind):
        return [_value(element) for element in scalar.values]
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.cast(pa.string()).as_py()
