"""Gives the columns of a Delta table their plain Arrow types.

Used where a version of a table is opened. deltalake hands over a VARIANT as a struct of two
binaries, as which it would be compared by its bytes: the log says which columns are none.
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import ArrayType, MapType, StructType, VariantType

from livemart.arrow.types import plain_schema
from livemart.arrow.variants import VARIANT


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the plain schema (timestamps in microseconds; with a zone: UTC)."""
    logged = table.schema()
    plain = plain_schema(pa.schema(logged.to_arrow()))
    if '"variant"' not in logged.to_json():
        return plain
    return pa.schema(
        [
            field.with_type(_type(of.type, field.type))
            for of, field in zip(logged.fields, plain, strict=True)
        ]
    )


def _type(logged: object, kind: pa.DataType) -> pa.DataType:
    """Return the type of a column or of what is in it, as the log says it."""
    if isinstance(logged, StructType):
        fields = zip(logged.fields, kind, strict=True)
        return pa.struct([field.with_type(_type(of.type, field.type)) for of, field in fields])
    if isinstance(logged, ArrayType):
        element = kind.value_field
        return pa.list_(element.with_type(_type(logged.element_type, element.type)))
    if isinstance(logged, MapType):
        item = kind.item_field
        key_type = _type(logged.key_type, kind.key_type)
        return pa.map_(key_type, item.with_type(_type(logged.value_type, item.type)))
    return VARIANT if isinstance(logged, VariantType) else kind
