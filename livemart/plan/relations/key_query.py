"""Gives the SELECTs that find affected keys: values over rows that a batch names.

Built by relations, one inside the other; what a query reads, and whether it repeats rows, is asked
of it and not of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from livemart.plan.sql.template import Template, template
from livemart.plan.sql.written import sql_of

_MOST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Rows of a stored relation in a batch, by its occurrence.

    `touched` rows may matter differently; `present` ones are there; `known` ones are there, or were
    before.

    >>> print(RowsOf("touched", 0))
    __touched_0__
    """

    kind: Literal["touched", "present", "known"]
    occurrence: int

    def __str__(self) -> str:
        return f"__{self.kind}_{self.occurrence}__"


@dataclass(frozen=True)
class KeyQuery:
    """SELECT of values, as w0, w1, ..., over rows and other such queries.

    `columns`: names and integers, if the values are nothing else, and the source is only rows.

    The shops whose orders changed; then their cities, through the shops that are there:

    >>> shops = key_query([exp.column("shop_id")], RowsOf("touched", 0))
    >>> print(shops, shops.columns, shops.occurrence)
    select distinct shop_id as w0 from __touched_0__ ('shop_id',) 0
    >>> rows = (RowsOf("present", 1), " join (", shops, ") as c on shop_id = c.w0")
    >>> print(key_query([exp.column("city")], *rows).source)
    __present_1__ join (select distinct shop_id as w0 from __touched_0__) as c on shop_id = c.w0
    """

    values: tuple[str, ...]
    source: Template[RowsOf | KeyQuery]
    columns: tuple[str | int, ...] | None
    is_distinct: bool

    def sql(self, *, repeats: bool = False) -> Template[RowsOf]:
        """Return the SQL; with `repeats` equal rows may come more than once."""
        word = "select distinct" if self.is_distinct and not repeats else "select"
        listed = ", ".join(f"{value} as w{index}" for index, value in enumerate(self.values))

        def inner(part: RowsOf | KeyQuery) -> Template[RowsOf]:
            return part.sql(repeats=repeats) if isinstance(part, KeyQuery) else Template((part,))

        return template(f"{word} {listed} from ", self.source.over(inner))

    @property
    def occurrence(self) -> int:
        """The relation whose touched rows are read."""
        return next(rows.occurrence for rows in self.sql().holes if rows.kind == "touched")

    def only(self, places: Sequence[int]) -> KeyQuery:
        """Return the query of some of its values alone, numbered anew."""
        values = tuple(self.values[place] for place in places)
        columns = self.columns and tuple(self.columns[place] for place in places)
        return replace(self, values=values, columns=columns)

    def __str__(self) -> str:
        return str(self.sql())


def key_query(
    values: Sequence[exp.Expr], *source: str | RowsOf | KeyQuery, is_distinct: bool = True
) -> KeyQuery:
    """Return the SELECT of some values from a source; of a constant where nothing is asked for."""
    columns = [_plain(value) for value in values] or [1]
    is_plain = len(source) == 1 and isinstance(source[0], RowsOf)
    return KeyQuery(
        tuple(map(sql_of, values)) or ("1",),
        Template(source),
        tuple(it for it in columns if it is not None) if is_plain and None not in columns else None,
        is_distinct,
    )


def _plain(value: exp.Expr) -> str | int | None:
    """Return the name of a column, or an integer of Spark's INT; None for all else."""
    if isinstance(value, exp.Column) and not value.table:
        return value.name
    if isinstance(value, exp.Literal | exp.Neg) and value.is_int:
        number = int(value.to_py())
        return number if abs(number) <= _MOST_INT else None
    return None
