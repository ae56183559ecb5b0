"""Gives the columns of a Delta table their plain Arrow types.

Used where a version of a table is opened, and its files are read. deltalake hands over a VARIANT as
a struct of two binaries, as which it would be compared by its bytes: the log says what it is.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.schema import ArrayType, MapType, StructType, VariantType

from livemart.arrow.calendars import may_hold_old_days
from livemart.arrow.types import plain_schema
from livemart.arrow.variants import VARIANT, holds_variant, is_variant


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


class OnlySparkError(pa.ArrowInvalid):  # type: ignore[misc]
    """A file holds values that Arrow would read as others, and Spark as they are meant.

    Parts of its variants are in separate columns (`typed_value`), which Arrow would cast away. Or
    its days are of the calendar of Spark 2.
    """


def require_own_days(footer: pq.FileMetaData, columns: Collection[str]) -> None:
    """Check that the days and times of a file are those that its numbers say.

    Raises:
        OnlySparkError
    """
    if may_hold_old_days(footer, columns):
        raise OnlySparkError(
            "a file with days before 1582 or times before 1900 in the calendar of Spark 2"
        )


def require_whole(stored: pa.Schema, schema: pa.Schema) -> None:
    """Check that the variants of a file are not shredded, of the columns of `schema`.

    Raises:
        OnlySparkError
    """
    for field in schema:
        place = stored.get_field_index(field.name) if holds_variant(field.type) else -1
        if place >= 0 and _is_shredded(stored.field(place).type, field.type):
            raise OnlySparkError(
                f"column {field.name}: its variants are shredded (delta.enableVariantShredding)"
            )


def _is_shredded(stored: pa.DataType, kind: pa.DataType) -> bool:
    if is_variant(kind):
        return bool(pa.types.is_struct(stored)) and stored.get_field_index("typed_value") >= 0
    if pa.types.is_struct(kind):
        return any(
            (place := stored.get_field_index(field.name)) >= 0
            and _is_shredded(stored.field(place).type, field.type)
            for field in kind
        )
    if pa.types.is_map(kind):
        return _is_shredded(stored.item_type, kind.item_type)
    return pa.types.is_list(kind) and _is_shredded(stored.value_type, kind.value_type)


def _type(logged: object, kind: pa.DataType) -> pa.DataType:
    """Return the type of a column, or of its elements, as the log writes it."""
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
