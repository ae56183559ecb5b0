"""Computes how much a stored total proves about its sum.

Used by signed changes and running totals. Without ANSI mode a sum of integers wraps, and a sum of
decimals that overflows is NULL. A cast wraps a value that it cannot hold, or makes it NULL. So a
stored NULL, or the 0 that COALESCE made of it, need not be nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from livemart.arrow.exact_numbers import Whole

# SUM over DECIMAL(p, s) is DECIMAL(p + 10, s), and no decimal has more than 38 digits.
_DIGITS_OF_SUM = 10
_MOST_DIGITS = 38
# Spark adds up in any order: values that cancel out may overflow on the way. Where no
# count of rows rules that out, totals must stay this many times below what SUM can hold.
_ROOM = 1_000
# A value of 64 bits is below it.
_LONGS = 2**63

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SumStep:
    """The result of a cast or COALESCE on a sum. `wraps`: an integer that does not fit wraps."""

    kind: pa.DataType
    wraps: bool = True


@dataclass(frozen=True, slots=True)
class SumLimits:
    """The limits of a column of totals; numbers count the last digit of its type.

    Attributes:
        limit: totals are known below it: integers that wrap, wrap beyond.
        sure_rows: of so many rows no total was lost on the way; None: none ever is.
        calm: see `_ROOM`; None where no sum overflows.
        calm_rows: of so many rows no order of adding up overflows.
    """

    limit: int
    sure_rows: int | None = None
    calm: int | None = None
    calm_rows: int = 0

    def is_known(self, values: Whole, rows: Whole | int) -> _Mask:
        """Return which totals of so many rows the column holds as they are."""
        is_held = _below(values, self.limit)
        if self.calm is not None:
            is_held &= _below(values, self.calm) | np.asarray(rows <= self.calm_rows, dtype=bool)
        return is_held

    def may_be_lost(self, rows: Whole) -> _Mask:
        """Return where a NULL, or a 0 for a NULL, may stand for a total that was lost."""
        if self.sure_rows is None:
            return np.zeros(len(rows), dtype=bool)
        lost: _Mask = (rows > self.sure_rows).astype(bool)
        return lost


def sum_type(argument: pa.DataType) -> pa.DataType | None:
    """Return the type of Spark's SUM over integers or decimals, None for all else."""
    if pa.types.is_integer(argument):
        return pa.int64()
    if pa.types.is_decimal(argument):
        digits = min(argument.precision + _DIGITS_OF_SUM, _MOST_DIGITS)
        return pa.decimal128(digits, argument.scale)
    return None


def sum_limits(argument: pa.DataType, steps: Sequence[SumStep]) -> SumLimits | None:
    """Return how exact the totals of a column are; None if they are rounded or it is unknown.

    Args:
        argument: what is summed.
        steps: what is put around SUM, inside out; the last is the column.
    """
    total = sum_type(argument)
    if total is None:
        return None
    chain = [SumStep(total), *steps]
    if not all(_is_exact(step.kind) for step in chain):
        return None
    scales = [_scale(argument), *(_scale(step.kind) for step in chain)]
    if scales != sorted(scales):
        return None
    unit = 10 ** scales[-1]
    largest = _bound(argument) * unit
    limits = [_bound(step.kind) * unit for step in chain]
    sure_rows: int | None = None
    # A wrapped total is at most so large.
    most: int | None = None
    for step, limit in zip(chain, limits, strict=True):
        is_narrower = most is None or most > limit
        if pa.types.is_integer(step.kind) and step.wraps:
            if is_narrower and sure_rows is not None:
                # A wrapped total does not show how large it was, and so whether it was lost before.
                return None
        elif is_narrower:
            rows = limit // largest
            sure_rows = rows if sure_rows is None else min(sure_rows, rows)
        most = limit if most is None else min(most, limit)
    if pa.types.is_integer(total) or argument.precision + _DIGITS_OF_SUM <= _MOST_DIGITS:
        return SumLimits(min(limits), sure_rows)
    return SumLimits(min(limits), sure_rows, limits[0] // _ROOM, limits[0] // largest)


def _below(values: Whole, limit: int) -> _Mask:
    if values.dtype != object and limit >= _LONGS:
        return np.ones(len(values), dtype=bool)
    below: _Mask = (np.abs(values) < limit).astype(bool)
    return below


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0


def _bound(kind: pa.DataType) -> int:
    """Return a bound of every whole part of the type; at most its magnitude for integers."""
    if pa.types.is_integer(kind):
        return int(2 ** (kind.bit_width - 1))
    # A decimal without whole digits is below one.
    return int(10 ** max(kind.precision - kind.scale, 0))
