"""Numbers are read from digits of ASCII, up to a length that costs no time to refuse."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from livemart.arrow.types import widens
from livemart.land.records.exact_values import converter
from livemart.land.records.numbers import decimal, double, integer, single
from livemart.land.records.schema import arrow_type
from livemart.land.records.untyped_values import MisfitError, Number
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


def test_a_float_has_as_many_digits_as_a_record() -> None:
    """Arrow's reader of JSON takes them as well."""
    assert double("0." + "1" * 100_000, "n", {}) == 0.1111111111111111
    assert single(f"1e{'0' * 2_000}1", "n", {}) == 10


@pytest.mark.parametrize(
    ("kind", "written", "wider"),
    [
        ("tinyint", "128", "smallint"),
        ("int", "3000000000", "bigint"),
        ("int", "-2147483649", "bigint"),
        ("int", "1e10", "bigint"),
        ("bigint", "9223372036854775808", "decimal(20,0)"),
        ("int", "1" * 25, "decimal(25,0)"),
        ("decimal(10,2)", "12345678901.23", "decimal(13,2)"),
        ("decimal(10,2)", "0.001", "decimal(11,3)"),
        ("decimal(4,4)", "-1.50", "decimal(5,4)"),
        ("float", "1e39", "double"),
    ],
)
def test_a_number_wider_than_declared_is_refused_with_the_type_that_holds_it(
    kind: str, written: str, wider: str
) -> None:
    declared = parse_type(kind)

    with pytest.raises(MisfitError) as caught:
        converter(declared, True)(Number(written), "n", {})

    advice = f"it is wider than the declared type: declare {wider}"
    assert str(caught.value) == f"n: {written} does not fit {kind}, {advice}"
    assert converter(parse_type(wider), True)(Number(written), "n", {}) is not None
    assert widens(arrow_type(declared), arrow_type(parse_type(wider)))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("int", "7.5"),
        ("int", "many"),
        ("int", "1" * 39),
        ("decimal(38,2)", "0.001"),
        ("decimal(10,2)", "1e37"),
        ("double", "1e999"),
    ],
)
def test_a_number_that_no_wider_type_holds_is_refused_without_advice(
    kind: str, written: str
) -> None:
    with pytest.raises(MisfitError, match=rf"does not fit {re.escape(kind)}$"):
        converter(parse_type(kind), True)(Number(written), "n", {})


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
    for written in ("-3.5e38", str(2**128 - 2**103)):
        with pytest.raises(MisfitError, match="float"):
            single(written, "n", {})
