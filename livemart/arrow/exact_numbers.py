"""Adds up integers and decimals exactly in numpy, and gives decimals other types.

Used by signed changes and running totals in memory, and where rows get the types of a table. Sums
take 64 bits where they suffice, else Python's own integers; nothing is rounded or wraps.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import one_array

# Two numbers below this add up without overflow.
_HALF = 2**62
# More digits than any decimal of Arrow or Spark has: nothing is rounded.
_DIGITS = Context(prec=100)
# So many digits have the decimals that 128 bits hold, and those of 256 bits.
_MOST_DIGITS, _MOST_DIGITS_OF_256_BITS = 38, 76

Whole = npt.NDArray[Any]


def to_whole(column: pa.ChunkedArray | pa.Array) -> Whole:
    """Return integers, or decimals as counts of their last digit; NULL is 0.

    Returns:
        int64 if every value is far from its ends, else Python integers (dtype object).

    Raises:
        TypeError: for any other type.
    """
    array = one_array(column)
    kind = array.type
    if pa.types.is_integer(kind):
        values: Whole = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        if pa.types.is_uint64(kind):
            return values.astype(object)
        values = values.astype(np.int64)
        return values if _is_moderate(values) else values.astype(object)
    if not pa.types.is_decimal(kind):
        raise TypeError(f"{kind} is no exact number")
    if not pa.types.is_decimal128(kind):
        return _by_digits(array)
    if not len(array):
        return np.zeros(0, dtype=np.int64)
    words = np.frombuffer(array.buffers()[1], dtype="<i8")
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    low, high = words[:, 0].copy(), words[:, 1]
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    if not ((high == (low >> 63)) | is_null).all():
        return _by_digits(array)
    low[is_null] = 0
    return low if _is_moderate(low) else low.astype(object)


def from_whole(values: Whole, kind: pa.DataType, is_null: npt.NDArray[np.bool_]) -> pa.Array | None:
    """Return the array that `to_whole` reads as `values`; None if one does not fit the type."""
    filled = np.where(is_null, 0, values)
    if pa.types.is_integer(kind):
        try:
            wide = pa.array(filled.astype(np.int64), pa.int64(), mask=is_null)
            return wide.cast(kind)
        except (OverflowError, pa.ArrowInvalid):
            return None
    limit = 10**kind.precision
    if len(filled) and (int(filled.max()) >= limit or int(filled.min()) <= -limit):
        return None
    if filled.dtype == object or not pa.types.is_decimal128(kind):
        digits = [
            None if missing else Decimal(int(value)).scaleb(-kind.scale, _DIGITS)
            for value, missing in zip(filled, is_null, strict=True)
        ]
        return pa.array(digits, kind)
    words = np.empty((len(filled), 2), dtype="<i8")
    words[:, 0], words[:, 1] = filled, filled >> 63
    valid = np.packbits(~is_null, bitorder="little")
    buffers = [pa.py_buffer(valid) if is_null.any() else None, pa.py_buffer(words)]
    return pa.Array.from_buffers(kind, len(filled), buffers)


def cast_exactly(
    column: pa.ChunkedArray | pa.Array, kind: pa.DataType
) -> pa.ChunkedArray | pa.Array:
    """Return a column in another type; decimals do not wrap.

    pyarrow 26 gives them the places of the type before it looks whether they fit. 128 bits wrap
    then, and what is left may fit.

    Raises:
        pa.ArrowInvalid: a value does not fit, or has more places.
        pa.ArrowNotImplementedError: there is no such cast.
    """
    stored = column.type
    are_decimals = pa.types.is_decimal(stored) and pa.types.is_decimal(kind)
    gains = kind.scale - stored.scale if are_decimals else 0
    if gains > 0 and stored.precision + gains > _MOST_DIGITS:
        if stored.precision + gains > _MOST_DIGITS_OF_256_BITS:
            raise pa.ArrowInvalid(f"{stored} may have more digits than are compared with {kind}")
        column = column.cast(pa.decimal256(_MOST_DIGITS_OF_256_BITS, kind.scale))
    return column.cast(kind)


def add_by_group(values: Whole, group: npt.NDArray[np.int64], size: int) -> Whole:
    """Return the sum of each group 0 .. size-1."""
    values = _with_room(values)
    sums: Whole = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, group, values)
    return sums


def totals_so_far(values: Whole) -> Whole:
    """Return the sum of each value and all before it."""
    summed: Whole = np.cumsum(_with_room(values))
    return summed


def at_scale(values: Whole, kind: pa.DataType, scale: int) -> Whole:
    """Return the values that `to_whole` reads from a column, as counts of a digit not larger.

    Args:
        values: integers, or counts of the last digit of `kind`.
        kind: integer or decimal.
        scale: digits after the point; at least those of `kind`.
    """
    factor = 10 ** (scale - (kind.scale if pa.types.is_decimal(kind) else 0))
    if factor == 1:
        return values
    if values.dtype != object and len(values) and _largest(values) * factor >= _HALF:
        values = values.astype(object)
    scaled: Whole = values * factor
    return scaled


def _with_room(values: Whole) -> Whole:
    """Return values of which any that are added up fit."""
    if values.dtype != object and len(values) and _largest(values) * len(values) >= _HALF:
        return values.astype(object)
    return values


def _largest(values: Whole) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))


def _is_moderate(values: Whole) -> bool:
    return not len(values) or (int(values.max()) < _HALF and int(values.min()) > -_HALF)


def _by_digits(array: pa.Array) -> Whole:
    scale = array.type.scale
    integers = np.zeros(len(array), dtype=object)
    integers[:] = [
        0 if value is None else int(value.scaleb(scale, _DIGITS)) for value in array.to_pylist()
    ]
    return integers
