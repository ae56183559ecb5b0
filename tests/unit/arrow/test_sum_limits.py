"""A stored total proves facts by the types of its computation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits, sum_type

_LONG, _INT, _SHORT = pa.int64(), pa.int32(), pa.int16()


def _decimal(digits: int, scale: int = 0) -> pa.DataType:
    return pa.decimal128(digits, scale)


@pytest.mark.parametrize(
    ("argument", "steps", "expected"),
    [
        # bigint wraps: Spark gives any value in its range, and no value becomes NULL.
        (_INT, [_LONG], SumLimits(2**63)),
        (_LONG, [_INT], SumLimits(2**31)),
        (_LONG, [_INT, _LONG], SumLimits(2**31)),
        (_LONG, [_decimal(38)], SumLimits(2**63)),
        (_LONG, [_decimal(20, 1)], SumLimits(2**63 * 10)),
        # Narrower than what wraps: NULL beyond, and so many of the largest never get there.
        (_LONG, [_decimal(10)], SumLimits(10**10, 0)),
        (_SHORT, [_decimal(10)], SumLimits(10**10, 10**10 // 2**15)),
        (_INT, [_decimal(5, 2)], SumLimits(10**5, 0)),
        # A value that was wrapped to a smaller type always fits.
        (_LONG, [_INT, _decimal(10)], SumLimits(2**31)),
        # A sum of decimals is NULL once it has more digits than its type.
        (_decimal(12, 2), [_decimal(22, 2)], SumLimits(10**22, 10**10)),
        (_decimal(12, 2), [_decimal(24, 4)], SumLimits(10**24, 10**10)),
        (_decimal(12, 2), [_decimal(18, 2)], SumLimits(10**18, 10**6)),
        (_decimal(28, 2), [_decimal(38, 2)], SumLimits(10**38, 10**10)),
        (_decimal(32, 2), [_decimal(38, 2)], SumLimits(10**38, 10**6, 10**35, 10**6)),
        (_decimal(38), [_decimal(38)], SumLimits(10**38, 1, 10**35, 1)),
        (_LONG, [_decimal(10), _LONG], SumLimits(10**10, 0)),
    ],
)
def test_types_say_what_a_total_is_worth(
    argument: pa.DataType, steps: list[pa.DataType], expected: SumLimits
) -> None:
    assert sum_limits(argument, [SumStep(kind) for kind in steps]) == expected


def test_a_try_cast_to_an_integer_does_not_wrap() -> None:
    assert sum_limits(_SHORT, [SumStep(_INT, wraps=False)]) == SumLimits(2**31, 2**16)


@pytest.mark.parametrize(
    ("argument", "steps"),
    [
        (pa.float64(), [pa.float64()]),
        (pa.float64(), [_decimal(20, 2)]),
        (pa.string(), [pa.float64()]),
        (_LONG, [pa.float64()]),
        (_LONG, [pa.float64(), _LONG]),
        (_decimal(12, 2), [_decimal(22, 1)]),
        (_decimal(12, 2), [_LONG]),
        # An overflow before, of which a wrapped total shows nothing.
        (_decimal(38), [_LONG]),
        (_decimal(18), [_INT]),
        (_decimal(12, 2), [_decimal(38, 0), _decimal(38, 2)]),
    ],
)
def test_what_is_rounded_or_wrapped_after_an_overflow_is_worth_nothing(
    argument: pa.DataType, steps: list[pa.DataType]
) -> None:
    assert sum_limits(argument, [SumStep(kind) for kind in steps]) is None


def test_sums_of_spark() -> None:
    kinds = [_SHORT, _decimal(12, 2), _decimal(30, 5), pa.float32(), pa.string()]

    expected = [_LONG, _decimal(22, 2), _decimal(38, 5), None, None]
    assert [sum_type(kind) for kind in kinds] == expected


def test_large_totals_of_many_rows_are_not_known() -> None:
    limits = SumLimits(limit=1_000_000, sure_rows=2, calm=1_000, calm_rows=2)
    values, rows = np.array([999, 1_000, 1_000, -1_000_000, -999_999]), np.array([9, 9, 2, 1, 1])

    assert limits.is_known(values, rows).tolist() == [True, False, True, False, True]
    assert limits.is_known(values.astype(object), 2**63).tolist() == [True, *[False] * 4]
    assert limits.may_be_lost(rows).tolist() == [True, True, False, False, False]
    assert not SumLimits(10).may_be_lost(rows).any()
