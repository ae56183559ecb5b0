"""Holds VARIANT in Arrow as a separate type, not as the struct that readers make of it.

Used wherever rows meet Spark, files, or another row. Parquet keeps a variant as two binaries; as a
mere struct it would lose its type on the way to Spark, and be compared and served by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.variant_values import value_identity

_PARTS = (
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False),
)
# How PySpark marks the struct that stands for a variant.
_MARK = {b"variant": b"true"}
_MARKED = pa.struct([_PARTS[0], _PARTS[1].with_metadata(_MARK)])


class VariantType(pa.ExtensionType):  # type: ignore[misc]
    """A VARIANT of Spark: `value` and `metadata` as the Parquet format lays them out."""

    def __init__(self) -> None:
        super().__init__(pa.struct(_PARTS), "livemart.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> VariantType:
        return cls()

    def __hash__(self) -> int:
        return hash(self.extension_name)


VARIANT = VariantType()


def is_variant(kind: pa.DataType) -> bool:
    """Return True for VARIANT itself, not for a type that holds one."""
    return isinstance(kind, VariantType)


def holds_variant(kind: pa.DataType) -> bool:
    """Return True for VARIANT, and for a struct, list or map with one at any depth."""
    return holds_type(kind, is_variant)


def holds_type(kind: pa.DataType, is_asked: Callable[[pa.DataType], bool]) -> bool:
    """Return True for a type that is asked for, and for a struct, list or map with one."""
    return is_asked(kind) or any(
        holds_type(kind.field(place).type, is_asked) for place in range(kind.num_fields)
    )


def is_marked(kind: pa.DataType) -> bool:
    """Return True for the struct by which PySpark hands over a variant."""
    return bool(pa.types.is_struct(kind)) and any(
        field.name == "metadata" and (field.metadata or {}).items() >= _MARK.items()
        for field in kind
    )


def has_parts(kind: pa.DataType) -> bool:
    """Return True for structs, lists, maps and variants: Arrow neither groups nor orders them."""
    return bool(pa.types.is_nested(kind)) or is_variant(kind)


def marked_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with PySpark's struct in place of each variant."""
    return pa.schema([_with_type(field, marked_type(field.type)) for field in schema])


def marked_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with PySpark's struct in place of each variant."""
    return _replaced_type(kind, is_variant, _as_struct)


def with_variants(rows: pa.Table) -> pa.Table:
    """Return rows of Spark with VARIANT in place of PySpark's structs.

    Not by a cast: PySpark calls the parts NOT NULL and leaves them NULL below a NULL variant, and
    Arrow casts no such array.
    """
    return _replaced(rows, is_marked, _as_variant)


def as_structs(rows: pa.Table) -> pa.Table:
    """Return the rows with a struct in place of each variant, as Parquet and PySpark need it."""
    return _replaced(rows, is_variant, _as_struct)


def nothing_of(schema: pa.Schema) -> pa.Table:
    """Return no rows; `Schema.empty_table` does not know extension types such as VARIANT."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def identities(variants: pa.Array) -> pa.Array:
    """Return, for each variant, bytes that are equal if and only if the values are; NULL of NULL.

    See `value_identity` for what is equal.
    """
    parts = variants.storage
    identity_of: dict[tuple[bytes, bytes], bytes] = {}
    listed: list[bytes | None] = []
    columns = (parts.field("value").to_pylist(), parts.field("metadata").to_pylist())
    for is_null, *pair in zip(parts.is_null().to_pylist(), *columns, strict=True):
        if is_null:
            listed.append(None)
            continue
        key = (pair[0], pair[1])
        if key not in identity_of:
            identity_of[key] = value_identity(*key)
        listed.append(identity_of[key])
    return pa.array(listed, pa.binary())


def _as_variant(array: pa.StructArray) -> pa.Array:
    return pa.ExtensionArray.from_storage(VARIANT, _struct(array, pa.struct(_PARTS)))


def _as_struct(array: pa.ExtensionArray) -> pa.Array:
    return _struct(array.storage, _MARKED)


def _struct(array: pa.StructArray, kind: pa.StructType) -> pa.Array:
    """Return the two binaries of a variant, without the NULLs that are below a NULL variant."""
    parts = [pc.fill_null(array.field(field.name), b"") for field in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def _replaced(
    rows: pa.Table,
    is_asked: Callable[[pa.DataType], bool],
    replace: Callable[[pa.Array], pa.Array],
) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if holds_type(field.type, is_asked):
            chunks = [_rebuilt(chunk, is_asked, replace) for chunk in rows.column(place).chunks]
            kind = _replaced_type(field.type, is_asked, replace)
            column = pa.chunked_array(chunks, kind)
            rows = rows.set_column(place, _with_type(field, kind), column)
    return rows


def _replaced_type(
    kind: pa.DataType,
    is_asked: Callable[[pa.DataType], bool],
    replace: Callable[[pa.Array], pa.Array],
) -> pa.DataType:
    return (
        _rebuilt(pa.nulls(0, kind), is_asked, replace).type if holds_type(kind, is_asked) else kind
    )


def _rebuilt(
    array: pa.Array,
    is_asked: Callable[[pa.DataType], bool],
    replace: Callable[[pa.Array], pa.Array],
) -> pa.Array:
    """Return an array with other arrays in place of those of a type, at any depth."""
    kind = array.type
    if is_asked(kind):
        return replace(array)
    if not holds_type(kind, is_asked):
        return array
    missing = array.is_null()
    if pa.types.is_struct(kind):
        parts = [_rebuilt(array.field(place), is_asked, replace) for place in range(len(kind))]
        fields = [_with_type(old, new.type) for old, new in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)
    # NULL where a list is: an array that begins in the middle takes no mask.
    offsets = pa.array(np.asarray(array.offsets), mask=np.append(np.asarray(missing), [False]))
    if pa.types.is_map(kind):
        keys, items = (_rebuilt(part, is_asked, replace) for part in (array.keys, array.items))
        kind = pa.map_(keys.type, _with_type(kind.item_field, items.type))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
    values = _rebuilt(array.values, is_asked, replace)
    kind = pa.list_(_with_type(kind.value_field, values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind)


def _with_type(field: pa.Field, kind: pa.DataType) -> pa.Field:
    return pa.field(field.name, kind, field.nullable)
