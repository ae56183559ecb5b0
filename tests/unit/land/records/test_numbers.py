"""Numbers are read from digits of ASCII, up to a length that costs no time to refuse."""

from __future__ import annotations

from decimal import Decimal

import pytest

from livemart.land.records.numbers import decimal, double, integer, single
from livemart.land.records.written import MisfitError, Number
from livemart.project.spark_types import parse_type


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        ("int", "+7", 7),
        ("int", "007", 7),
        ("int", "-0.0", 0),
        ("int", "7.", 7),
        ("tinyint", "-128", -128),
        ("tinyint", "1.27e2", 127),
        ("bigint", "-9223372036854775808", -(1 << 63)),
        ("bigint", "0" * 399 + "7", 7),
    ],
)
def test_a_whole_number_may_be_written_in_several_ways(
    kind: str, written: str, expected: int
) -> None:
    assert integer(parse_type(kind))(written, "n", {}) == expected


@pytest.mark.parametrize(
    "written", ["", " 7", "7\n", "1_000", "1,000", "0x7", "\u0663", "\uff11", "e3", "."]
)
def test_text_that_is_no_number_is_refused_by_every_type(written: str) -> None:
    for convert in (integer(parse_type("bigint")), decimal(parse_type("decimal(38,2)")), single):
        with pytest.raises(MisfitError, match="n: "):
            convert(written, "n", {})


def test_digits_beyond_400_are_refused_except_by_a_float() -> None:
    written = "0" * 400 + "7"

    for convert in (integer(parse_type("bigint")), decimal(parse_type("decimal(38,2)"))):
        with pytest.raises(MisfitError):
            convert(written, "n", {})
    assert double(written, "n", {}) == 7


def test_a_boolean_is_no_number() -> None:
    with pytest.raises(MisfitError):
        integer(parse_type("int"))(True, "n", {})
    with pytest.raises(MisfitError):
        double(True, "n", {})


def test_a_decimal_has_the_digits_of_its_type() -> None:
    convert = decimal(parse_type("decimal(4,2)"))

    assert str(convert(Number("-1.5"), "n", {})) == "-1.50"
    assert str(convert("1e-2", "n", {})) == "0.01"
    assert convert("99.990", "n", {}) == Decimal("99.99")
    for written in ("100", "-100", "0.001"):
        with pytest.raises(MisfitError):
            convert(written, "n", {})


def test_a_float_has_a_smaller_range_than_a_double() -> None:
    assert single("3.4028234663852886e38", "n", {}) == 3.4028234663852886e38
    assert double("3.5e38", "n", {}) == 3.5e38
    with pytest.raises(MisfitError, match="float"):
        single("-3.5e38", "n", {})
