"""Numbers are written as the project wants, and with all their digits otherwise."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from livemart.project.declared.model_page import PageSpec
from livemart.serve.page.number_formats import NumberFormats
from livemart.serve.page.text import DASH

FORMS = {"amount": "money", "share": "percent", "visits": "compact", "weight": "3"}
OF_ROWS = NumberFormats.of(PageSpec(formats=FORMS, currency="code"), ["amount", "code", "visits"])
OF_ALL = NumberFormats.of(PageSpec(formats=FORMS, currency="KWD"), ["amount", "visits"])


@pytest.mark.parametrize(
    ("column", "value", "code", "text"),
    [
        ("amount", Decimal("8243.505"), "EUR", "€8,243.51"),
        ("amount", Decimal("-8243.50"), "JPY", "-JP¥8,244"),
        ("amount", 5, "KWD", "KWD\N{NO-BREAK SPACE}5.000"),
        ("amount", Decimal("8243.505"), "", "8,243.505"),
        ("amount", Decimal("8243.505"), "euros", "8,243.51"),
        ("amount", None, "EUR", DASH),
        ("amount", float("nan"), "EUR", "nan"),
        ("amount", Decimal(10**30), "EUR", f"{10**30:,}"),
        ("share", Decimal("0.1235"), "", "12.4%"),
        ("share", -1.0, "", "-100.0%"),
        ("share", Decimal("0." + "1" * 38), "", "11.1%"),
        ("visits", 12_345, "", "12.3K"),
        ("visits", 999, "", "999"),
        ("weight", 2.0005, "", "2.001"),
        ("weight", 1234, "", "1,234.000"),
        ("weight", 1e300, "", "1e+300"),
        ("other", Decimal("0.10"), "EUR", "0.10"),
        ("other", Decimal("-0.0000001"), "", "-0.0000001"),
        ("other", Decimal("0E-8"), "", "0.00000000"),
    ],
)
def test_a_number_has_the_format_of_its_column(
    column: str, value: Any, code: str, text: str
) -> None:
    assert OF_ROWS.write(column, value, code) == text


def test_a_currency_is_that_of_the_row_or_of_all() -> None:
    rows: list[dict[str, Any]] = [{"code": "EUR"}, {"code": None}, {"code": "JPY"}]

    assert [OF_ROWS.code_of(row) for row in rows] == ["EUR", "", "JPY"]
    assert [OF_ALL.code_of(row) for row in rows] == ["KWD"] * 3
    assert OF_ROWS.code_of_all(rows[:1]) == "EUR"
    assert OF_ROWS.code_of_all(rows) == ""
    assert OF_ROWS.are_mixed("amount", rows) and not OF_ROWS.are_mixed("visits", rows)
    assert not OF_ALL.are_mixed("amount", rows)


def test_marks_of_an_axis_are_percent_where_the_numbers_are() -> None:
    marks = [Decimal(0), Decimal("0.25"), Decimal("0.5")]

    assert OF_ROWS.write_marks("share", marks) == ["0%", "25%", "50%"]
    assert OF_ROWS.write_marks("weight", marks) == ["0", "0.25", "0.5"]
