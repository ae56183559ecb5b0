"""Converts between texts, doubles and floats of 32 bits, which Python lacks.

Used where text lands in a column of type `float`, and where the serving store keeps such a column.
"""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# The first number beyond all floats; where a neighbor is asked for, it stands for infinity.
_BEYOND = 2.0**128
# A number halfway between two floats has a digit more than theirs, which are 24 binary ones.
_BITS_OF_HALVES = 2.0**25
_SINGLE = struct.Struct("<f")

_Doubles = npt.NDArray[np.float64]


def shortest_double(single: float) -> float:
    """Return the double of the shortest decimal that reads back as the float `single`.

    It has the fewest digits of all, and such doubles are ordered as their floats.

    >>> shortest_double(0.10000000149011612)
    0.1
    """
    return float(str(np.float32(single)))


def shortest_doubles(singles: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return these doubles of a column of floats."""
    return singles.cast(pa.string()).cast(pa.float64())


def nearest_single(text: str) -> float:
    """Return the float nearest to a number that `float` reads; infinity beyond the largest.

    A text is read as a double first. Only a double halfway between two floats does not show on
    which side of it the number is.

    >>> nearest_single("7.038531e-26") == float(np.float32(7.038531e-26))
    False
    """
    number = float(text)
    if not (math.frexp(number)[0] * _BITS_OF_HALVES).is_integer():
        # More digits than a number halfway between two floats has.
        with suppress(OverflowError):
            (single,) = _SINGLE.unpack(_SINGLE.pack(number))
            return float(single)
    nearest, other, is_half = (part.item() for part in _around(np.array(number)))
    if is_half and (exact := Decimal(text)) != (half := Decimal(number)):
        nearest = max(nearest, other) if exact > half else min(nearest, other)
    return math.copysign(math.inf, nearest) if abs(nearest) == _BEYOND else nearest


def are_halves(doubles: _Doubles) -> npt.NDArray[np.bool_]:
    """Return whether each double is halfway between two floats, so that a text decides."""
    return _around(doubles)[2]


def _around(doubles: _Doubles) -> tuple[_Doubles, _Doubles, npt.NDArray[np.bool_]]:
    """Return the nearest floats, those on the other side, and whether both are equally near."""
    with np.errstate(all="ignore"):
        singles = doubles.astype(np.float32)
        toward = np.where(doubles > singles, np.inf, -np.inf).astype(np.float32)
        others = np.nextafter(singles, toward)
    nearest, other = (
        np.clip(part.astype(np.float64), -_BEYOND, _BEYOND) for part in (singles, others)
    )
    return nearest, other, (nearest + other) / 2 == doubles
