"""Converts written numbers to whole, decimal or floating ones.

Used by `converter` for each numeric type. Whole numbers and decimals are exact or refused; floating
ones are finite or refused.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from livemart.arrow.single_floats import nearest_single
from livemart.land.records.untyped_values import Convert, Rescued, misfit
from livemart.project.spark_types import MAX_PRECISION, SparkType

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# No writer gives more digits by accident, and each costs quadratic time to read.
MAX_DIGITS = 400
# Digits for which Delta widens a bigint to a decimal.
_LONGEST_BIGINT = 20
_EXACT = Context(prec=2 * MAX_DIGITS)


def integer(kind: SparkType) -> Convert:
    """Return the conversion to a whole number; `7.0` and `2e3` are such."""
    bound = 1 << (_BITS[kind.name] - 1)

    def convert(value: Any, path: str, rescued: Rescued) -> int:
        if isinstance(value, str) and len(value) <= MAX_DIGITS:
            if _INTEGER.match(value):
                number = int(value)
                if -bound <= number < bound:
                    return number
            elif (exact := _to_decimal(value)) is not None and exact.copy_abs() <= bound:
                number = int(exact)
                if number == exact and -bound <= number < bound:
                    return number
        raise misfit(path, value, kind, _wider_than(kind, value))

    return convert


def decimal(kind: SparkType) -> Convert:
    """Return the conversion to a decimal; digits beyond its scale must be zeros."""
    quantum, limit = Decimal(1).scaleb(-kind.scale), 10 ** (kind.precision - kind.scale)

    def convert(value: Any, path: str, rescued: Rescued) -> Decimal:
        if isinstance(value, str) and (number := _to_decimal(value)) is not None:
            try:
                # Unlike abs, which rounds to 28 digits.
                if (
                    number.copy_abs() < limit
                    and (fitted := number.quantize(quantum, context=_EXACT)) == number
                ):
                    return fitted
            except InvalidOperation:
                pass
        raise misfit(path, value, kind, _wider_than(kind, value))

    return convert


def _wider_than(kind: SparkType, value: Any) -> SparkType | None:
    """Return a type that holds a number and all that `kind` does; None if there is none.

    It is of the same family: a fraction is no whole number that was declared too narrow.
    """
    number = _to_decimal(value) if isinstance(value, str) else None
    if number is None:
        return None
    is_whole = kind.name in _BITS
    exact = number.normalize(_EXACT)
    places = max(0, -int(exact.as_tuple().exponent)) if exact else 0
    if is_whole and places:
        return None
    for name, bits in _BITS.items() if is_whole else ():
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return SparkType(name)
    scale = max(kind.scale, places)
    # Whole numbers of a table fit into no narrower decimal.
    whole = _LONGEST_BIGINT if is_whole else kind.precision - kind.scale
    whole = max(whole, number.adjusted() + 1)
    return SparkType("decimal", whole + scale, scale) if whole + scale <= MAX_PRECISION else None


def _to_decimal(text: str) -> Decimal | None:
    if len(text) > MAX_DIGITS or not _NUMBER.match(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        # An exponent of twenty digits, which no Decimal holds.
        return None
    # 1e999999999 is short to write and long to work with.
    return number if not number or abs(number.adjusted()) <= MAX_DIGITS else None


def double(value: Any, path: str, rescued: Rescued) -> float:
    """Convert to a finite double."""
    if isinstance(value, str) and _NUMBER.match(value):
        number = float(value)
        # NaN and infinities would poison every sum they meet.
        if math.isfinite(number):
            return number
    raise misfit(path, value, "double")


def single(value: Any, path: str, rescued: Rescued) -> float:
    """Convert to the nearest float of 32 bits, which is finite."""
    double(value, path, rescued)
    number = nearest_single(value)
    if math.isinf(number):
        raise misfit(path, value, "float", "double")
    return number
