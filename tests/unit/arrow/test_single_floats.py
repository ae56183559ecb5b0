"""Floats of 32 bits: a text lands as the nearest one, and each has its shortest digits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.single_floats import (
    are_halves,
    nearest_single,
    shortest_double,
    shortest_doubles,
)

LARGEST = float(np.finfo(np.float32).max)
# Halfway between the largest float and the first number beyond.
LIMIT = 2**128 - 2**103


def _nearest(text: str) -> float:
    """Return the nearest of three floats by exact distance; at the same one the even float."""
    exact = Fraction(text)
    with np.errstate(over="ignore"):
        near = np.float32(float(exact))
    around = [near, *(np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf))]
    finite = [each for each in around if np.isfinite(each)]
    best = min(
        finite, key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.int32)) & 1)
    )
    return float(best)


finite = st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**120)


@given(finite, st.sampled_from([-1, 0, 1]), st.integers(20, 60))
def test_a_text_beside_a_tie_is_the_nearest_float(single: float, side: int, places: int) -> None:
    beside = float(np.nextafter(np.float32(single), np.float32(np.inf)))
    half = (Fraction(single) + Fraction(beside)) / 2
    # So far beside the tie that only exact digits show it.
    number = half + side * abs(half or Fraction(1, 2**150)) / 10**places
    denominator = 10**260
    digits = round(number * denominator)
    text = f"{digits}e-260"

    assert nearest_single(text) == _nearest(text)
    assert bool(are_halves(np.array([float(text)]))[0]) == (Fraction(float(text)) == half)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.038531e-26", float(np.uint32(0x15AE43FD).view(np.float32))),
        (f"{LIMIT - 1}", LARGEST),
        (f"-{LIMIT - 1}", -LARGEST),
        (f"{LIMIT}", math.inf),
        ("1e39", math.inf),
        ("-1e999", -math.inf),
        ("1e-50", 0.0),
        ("0.1", float(np.float32(0.1))),
    ],
)
def test_known_texts(text: str, expected: float) -> None:
    assert nearest_single(text) == expected


def test_texts_of_no_finite_number_keep_it() -> None:
    assert math.isnan(nearest_single("NaN"))
    assert math.copysign(1, nearest_single("-0.0")) == -1


@given(st.floats(width=32, allow_nan=False))
def test_the_shortest_digits_read_back(single: float) -> None:
    assert nearest_single(repr(shortest_double(single))) == single


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_the_shortest_digits_have_the_order_of_the_floats(singles: list[float]) -> None:
    assert sorted(map(shortest_double, singles)) == list(map(shortest_double, sorted(singles)))


@given(st.lists(st.none() | st.floats(width=32)))
def test_a_column_has_the_shortest_digits_of_each(singles: list[float | None]) -> None:
    column = pa.chunked_array([pa.array(singles, pa.float32())])

    doubles = shortest_doubles(column).to_pylist()

    # NaN and the sign of zero count, which no `==` sees.
    expected = [None if single is None else shortest_double(single) for single in singles]
    assert list(map(repr, doubles)) == list(map(repr, expected))
