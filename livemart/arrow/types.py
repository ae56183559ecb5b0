"""Gives each Spark type the one Arrow form in which its values are held, compared, written.

Used to read, hand over, look up and commit rows in memory. A value that a type cannot hold is an
error, never NULL.
"""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.exact_numbers import cast_exactly
from livemart.arrow.times import is_time
from livemart.arrow.variants import VARIANT, holds_type, is_marked, with_variants
from livemart.errors import RefreshError

# Digits of the decimal that Spark makes of an integer, by its bits, to compare it with decimals.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_MOST_DIGITS = 38
# Begins the kind of a column that was declared with a CHAR or VARCHAR, at any depth.
SIZED = "sized "
# Decimals of so many digits have an exact common type with each other and with each integer.
_DIGITS_BESIDE_INTEGERS = 18
# A double holds each whole number of so many bits.
_EXACT_DOUBLE_BITS = 32


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without large, view and dictionary forms; timestamps in µs, UTC."""
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if (
        types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz is not None else None)
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if is_marked(kind):
        return VARIANT
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), _plain_field(kind.item_field))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field).with_name("element"))
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types only and no metadata."""
    return pa.schema([_plain_field(field) for field in schema])


def plain_table(table: pa.Table) -> pa.Table:
    """Return rows of Spark with the types that tables have, one chunk a column."""
    return with_variants(table).cast(plain_schema(table.schema)).combine_chunks()


def compared_as(
    left: pa.DataType, right: pa.DataType, *, is_utc: bool = True
) -> pa.DataType | None:
    """Return the type in which Spark compares values of two types; None where it is another way.

    Text is read as the other type, and decimals of too many digits are rounded: both are None. So
    are times with and without a zone, unless that of the session `is_utc`.
    """
    types = pa.types
    left, right = plain_type(left), plain_type(right)
    if left == right or types.is_null(right):
        return left
    if types.is_null(left):
        return right
    if _is_number(left) and _is_number(right):
        return _compared_numbers(left, right)
    if is_time(left) and is_time(right):
        zones = [types.is_timestamp(kind) and kind.tz is not None for kind in (left, right)]
        if any(zones) and not all(zones) and not is_utc:
            return None
        return pa.timestamp("us", tz="UTC" if any(zones) else None)
    return None


def compares_exactly(left: pa.DataType, right: pa.DataType, *, is_utc: bool = True) -> bool:
    """Return True if values of two types are equal in Spark only where they are the same value.

    >>> compares_exactly(pa.int32(), pa.decimal128(12, 2))
    True
    >>> compares_exactly(pa.int64(), pa.float64())  # both are compared as doubles
    False
    """
    common = compared_as(left, right, is_utc=is_utc)
    if common is None:
        return False
    return not pa.types.is_floating(common) or plain_type(left) == plain_type(right)


def key_kind(kind: pa.DataType) -> str:
    """Return a word that types share if a value of one equals at most one value of the other.

    >>> key_kind(pa.int32()) == key_kind(pa.decimal128(12, 2))
    True
    >>> key_kind(pa.int32()) == key_kind(pa.string())  # 1 equals '1' and '01'
    False
    """
    plain = plain_type(kind)
    is_short = pa.types.is_decimal(plain) and plain.precision <= _DIGITS_BESIDE_INTEGERS
    return "number" if is_short or pa.types.is_signed_integer(plain) else str(plain)


def widens(stored: pa.DataType, declared: pa.DataType) -> bool:
    """Return True if each value of `stored` is the same value in `declared`: nothing is lost.

    A struct may gain fields as well. (None without a zone: they ask more of a table's readers.)

    >>> widens(pa.int32(), pa.int64()), widens(pa.decimal128(10, 2), pa.decimal128(12, 1))
    (True, False)
    """
    types = pa.types
    if stored == declared:
        return True
    if types.is_signed_integer(stored):
        if types.is_signed_integer(declared):
            return bool(declared.bit_width > stored.bit_width)
        if types.is_decimal(declared):
            return bool(declared.precision - declared.scale >= _DIGITS[stored.bit_width])
        return bool(types.is_float64(declared) and stored.bit_width <= _EXACT_DOUBLE_BITS)
    if types.is_float32(stored):
        return bool(types.is_float64(declared))
    if types.is_decimal(stored) and types.is_decimal(declared):
        gains = declared.scale - stored.scale
        return bool(0 <= gains <= declared.precision - stored.precision)
    if types.is_list(stored) and types.is_list(declared):
        return widens(stored.value_type, declared.value_type)
    if types.is_map(stored) and types.is_map(declared):
        return stored.key_type == declared.key_type and widens(stored.item_type, declared.item_type)
    if types.is_struct(stored) and types.is_struct(declared):
        members = {field.name: field.type for field in declared}
        gained = members.keys() - {field.name for field in stored}
        return not any(holds_type(members[name], _is_local_time) for name in gained) and all(
            field.name in members and widens(field.type, members[field.name]) for field in stored
        )
    return False


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _compared_numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_floating(left) or types.is_floating(right):
        kinds = {left, right}
        has_double = pa.float64() in kinds or any(map(types.is_decimal, kinds))
        return pa.float64() if has_double else pa.float32()
    if types.is_integer(left) and types.is_integer(right):
        return left if left.bit_width >= right.bit_width else right
    sizes = [
        (kind.precision - kind.scale, kind.scale)
        if types.is_decimal(kind)
        else (_DIGITS[kind.bit_width], 0)
        for kind in (left, right)
    ]
    whole, scale = (max(parts) for parts in zip(*sizes, strict=True))
    return pa.decimal128(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_signed_integer(kind)
        or types.is_decimal(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
    )


def align(table: pa.Table, schema: pa.Schema, relation: str) -> pa.Table:
    """Return the columns of `schema`, by name, cast without losing a value.

    Args:
        schema: plain schema of the table to write to.
        relation: named in errors.

    Raises:
        RefreshError: SCHEMA_MISMATCH, if a column is missing, unknown, does not fit its type, or is
            NULL where the table forbids it.
    """
    missing = [name for name in schema.names if name not in table.column_names]
    unknown = [name for name in table.column_names if name not in schema.names]
    if missing or unknown or len(set(table.column_names)) != table.num_columns:
        raise schema_mismatch(
            relation, f"columns {table.column_names}, the table has {schema.names}"
        )
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            try:
                column = cast_exactly(column, field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise schema_mismatch(relation, f"column {field.name}: {error}") from error
        if not field.nullable and column.null_count:
            raise schema_mismatch(relation, f"column {field.name} is NOT NULL, found NULL")
        columns.append(column)
    return pa.table(columns, schema=schema).combine_chunks()


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain_type(field.type), field.nullable)


def schema_mismatch(relation: str, difference: str) -> RefreshError:
    """Return the error of rows that do not fit the columns of their table."""
    return RefreshError(
        "SCHEMA_MISMATCH",
        f"{relation}: {difference}",
        hint="rebuild the model, or give its SQL the columns and types of the table",
    )
