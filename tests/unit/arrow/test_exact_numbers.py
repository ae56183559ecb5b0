"""Exact sums: what goes in comes out, up to 38 digits, and what does not fit is said."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.exact_numbers import add_by_group, cast_exactly, from_whole, to_whole

_KINDS = [pa.int8(), pa.int32(), pa.int64(), pa.decimal128(18, 2), pa.decimal128(38, 6)]


def _values(kind: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_integer(kind):
        half = 2 ** (kind.bit_width - 1)
        return st.integers(-half, half - 1)
    limit = 10**kind.precision - 1
    return st.integers(-limit, limit).map(lambda digits: Decimal(f"{digits}e-{kind.scale}"))


def _digits(value: object) -> int:
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        return (-1 if sign else 1) * int("".join(map(str, digits)))
    return value if isinstance(value, int) else 0


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@given(data=st.data())
def test_what_goes_in_comes_out(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | _values(kind), max_size=8))
    skipped = data.draw(st.integers(0, len(values)))
    array = pa.array(values, kind).slice(skipped)

    is_null = np.array([value is None for value in values[skipped:]], dtype=bool)

    assert from_whole(to_whole(array), kind, is_null) == array


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@given(data=st.data())
def test_sums_are_those_of_python(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | _values(kind), min_size=1, max_size=8))
    groups = np.array([data.draw(st.integers(0, 2)) for _ in values])
    digits = [_digits(value) for value in values]

    sums = add_by_group(to_whole(pa.array(values, kind)), groups, 3)

    assert [int(each) for each in sums] == [
        sum(each for each, group in zip(digits, groups, strict=True) if group == wanted)
        for wanted in range(3)
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(128, pa.int8()), (-(2**63) - 1, pa.int64()), (10**18, pa.decimal128(18, 2))],
)
def test_a_total_that_outgrows_its_type_is_said(value: int, kind: pa.DataType) -> None:
    values = np.array([value], dtype=object)

    assert from_whole(values, kind, np.array([False])) is None


def test_a_float_is_no_exact_number() -> None:
    with pytest.raises(TypeError):
        to_whole(pa.array([1.5]))


@given(data=st.data())
def test_a_decimal_in_another_type_is_the_same_number_or_none(data: st.DataObject) -> None:
    """By a cast of pyarrow 26 -3784612169780.3273923 is -7477896957.91... in decimal(38,28)."""
    kinds = []
    for most in (st.integers(1, 60), st.integers(1, 38)):
        digits = data.draw(most)
        of = pa.decimal128 if digits <= 38 else pa.decimal256
        kinds.append(of(digits, data.draw(st.integers(0, min(digits, 38)))))
    stored, kind = kinds
    value = data.draw(_values(stored))
    assert isinstance(value, Decimal)
    exact, unit = Context(prec=100), Decimal(1).scaleb(-kind.scale)
    fits = value.quantize(unit, context=exact) == value and _fits(value, kind)

    try:
        cast = cast_exactly(pa.array([value], stored), kind).to_pylist()
    except pa.ArrowInvalid:
        # Those of 256 bits may be left to others.
        assert not fits or pa.types.is_decimal256(stored)
    else:
        assert (fits, cast) == (True, [value])


def _fits(value: Decimal, kind: pa.DataType) -> bool:
    return bool(value.copy_abs() < 10 ** (kind.precision - kind.scale))


def test_decimals_that_wrap_in_128_bits_do_not_fit() -> None:
    column = pa.chunked_array([pa.array([Decimal("-3784612169780.3273923")])])

    with pytest.raises(pa.ArrowInvalid):
        cast_exactly(column, pa.decimal128(38, 28))
