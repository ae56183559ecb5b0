"""Writes numbers of a model's page as its project wants: as money, percent, compact or rounded.

Used by the charts and the rows of a model. A number without a format keeps all its digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from babel.numbers import format_compact_decimal, format_decimal

from livemart.project.declared.model_page import COMPACT, MONEY, PERCENT, PageSpec
from livemart.serve.page.charts import ChartRow, plotted
from livemart.serve.page.text import DASH, LOCALE, LocalFormat

# From here on an axis counts thousands and millions.
_COMPACT_FROM = 10_000
# A longer number is not rounded: it is no amount that anybody reads.
_TOO_LONG = 10**15


@dataclass(frozen=True, slots=True)
class NumberFormats:
    """The formats of a model's numbers.

    `forms`: by column, as `PageSpec.formats`. `currency_column` holds the code of each row's
    amounts; without one, `currency` is that of all.
    """

    forms: Mapping[str, str] = field(default_factory=dict)
    currency_column: str = ""
    currency: str = ""

    @classmethod
    def of(cls, page: PageSpec, columns: Iterable[str]) -> NumberFormats:
        """Return the formats of a page that was fitted to these columns."""
        is_column = page.currency in set(columns)
        column, code = (page.currency, "") if is_column else ("", page.currency)
        return cls(page.formats, column, code)

    def code_of(self, row: ChartRow) -> str:
        """Return the currency of a row; empty if it is not known."""
        code = row.get(self.currency_column) if self.currency_column else self.currency
        return str(code or "").strip()

    def code_of_all(self, rows: Iterable[ChartRow]) -> str:
        """Return the currency of rows; empty if they have several, or an unknown one."""
        codes = {self.code_of(row) for row in rows}
        return codes.pop() if len(codes) == 1 else ""

    def are_mixed(self, column: str, rows: Iterable[ChartRow]) -> bool:
        """Return True for amounts in several currencies, which no length compares."""
        is_money = self.forms.get(column) == MONEY
        return is_money and len({self.code_of(row) for row in rows}) > 1

    def write(self, column: str, value: Any, code: str) -> str:
        """Return a number as text.

        Args:
            column: of the number.
            value: a number, or None.
            code: the currency of an amount; without one it keeps its digits.
        """
        number, form = plotted(value), self.forms.get(column)
        is_unknown = form == MONEY and not code
        if form is None or number is None or is_unknown or abs(number) >= _TOO_LONG:
            return exact(value)
        decimal = value if isinstance(value, Decimal) else Decimal(repr(value))
        if form == MONEY:
            return _local(code).money(decimal)
        if form == PERCENT:
            return f"{_rounded(decimal * 100, 1)}%"
        if form == COMPACT:
            return str(format_compact_decimal(decimal, locale=LOCALE, fraction_digits=1))
        return _rounded(decimal, int(form))

    def write_marks(self, column: str, marks: Sequence[Decimal]) -> list[str]:
        """Return the texts of the marks of a number's axis."""
        if self.forms.get(column) == PERCENT:
            return [f"{text}%" for text in write_marks([mark * 100 for mark in marks])]
        return write_marks(marks)


# Numbers with all their digits.
PLAIN_NUMBERS = NumberFormats()


def exact(value: Any) -> str:
    """Return a number with all its digits and with thousands apart, or a dash.

    >>> exact(Decimal("-1234567.50"))
    '-1,234,567.50'
    >>> exact(Decimal("0.0000001"))
    '0.0000001'
    """
    if plotted(value) is None:
        return DASH if value is None else str(value)
    # Python would write 1E-7 for 0.0000001.
    text = f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}"
    return text.removesuffix(".0") if isinstance(value, float) else text


def write_marks(marks: Sequence[Decimal]) -> list[str]:
    """Return the texts of marks of an axis, as short as they can be.

    >>> write_marks([Decimal(0), Decimal(500_000), Decimal(1_000_000)])
    ['0', '500K', '1M']
    """
    largest = max(map(abs, marks))
    if largest >= Decimal("1e15") or (largest and largest < Decimal("1e-4")):
        return [f"{mark.normalize():.3g}" if mark else "0" for mark in marks]
    if largest >= _COMPACT_FROM:
        return [
            format_compact_decimal(mark, locale=LOCALE, fraction_digits=2) if mark else "0"
            for mark in marks
        ]
    return [format_decimal(mark, format="#,##0.######", locale=LOCALE) for mark in marks]


def _rounded(number: Decimal, digits: int) -> str:
    rounded = number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return f"{rounded:,f}"


@lru_cache(maxsize=256)
def _local(code: str) -> LocalFormat:
    return LocalFormat.of(None, code)
