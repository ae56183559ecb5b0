"""Gives the SELECTs that find affected keys: values over rows that a batch names.

Built by relations, one inside the other; what a query reads, and whether it repeats rows, is asked
of it and not of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    `sql`: the statement; `repeating`: one whose equal rows may come more than once; `columns`:
    names and integers, if the values are nothing else, and the source is only rows; `occurrence`:
    the relation whose touched rows are read, if any are.

    The shops whose orders changed; then their cities, through the shops that are there:

    >>> shops = key_query([exp.column("shop_id")], RowsOf("touched", 0))
    >>> print(shops, shops.columns, shops.occurrence)
    select distinct shop_id as w0 from __touched_0__ ('shop_id',) 0
    >>> rows = (RowsOf("present", 1), " join (", shops, ") on w0 = id")
    >>> print(key_query([exp.column("city")], *rows, is_distinct=False).repeating)
    select city as w0 from __present_1__ join (select shop_id as w0 from __touched_0__) on w0 = id
    """

    values: tuple[str, ...]
    source: Template[RowsOf | KeyQuery]
    columns: tuple[str | int, ...] | None
    sql: Template[RowsOf]
    repeating: Template[RowsOf]
    occurrence: int | None

    def only(self, places: Sequence[int]) -> KeyQuery:
        """Return the query of some of its values alone, numbered from 0."""
        values = tuple(self.values[place] for place in places)
        columns = self.columns and tuple(self.columns[place] for place in places)
        return _written(values, self.source, columns, is_distinct=True)

    def __str__(self) -> str:
        return str(self.sql)


def key_query(
    values: Sequence[exp.Expr], *source: str | RowsOf | KeyQuery, is_distinct: bool = True
) -> KeyQuery:
    """Return the SELECT of some values from a source; of a constant where nothing is asked for."""
    columns = [_plain(value) for value in values] or [1]
    plain = tuple(column for column in columns if column is not None)
    is_plain = len(source) == 1 and isinstance(source[0], RowsOf) and len(plain) == len(columns)
    texts = tuple(map(sql_of, values)) or ("1",)
    return _written(texts, Template(source), plain if is_plain else None, is_distinct=is_distinct)


def _written(
    values: tuple[str, ...],
    source: Template[RowsOf | KeyQuery],
    columns: tuple[str | int, ...] | None,
    *,
    is_distinct: bool,
) -> KeyQuery:
    listed = ", ".join(f"{value} as w{index}" for index, value in enumerate(values))
    word = "select distinct" if is_distinct else "select"
    sql = template(
        f"{word} {listed} from ",
        source.over(lambda part: part.sql if isinstance(part, KeyQuery) else Template((part,))),
    )
    repeating = template(
        f"select {listed} from ",
        source.over(lambda it: it.repeating if isinstance(it, KeyQuery) else Template((it,))),
    )
    touched = (rows.occurrence for rows in sql.holes if rows.kind == "touched")
    return KeyQuery(values, source, columns, sql, repeating, next(touched, None))


def _plain(value: exp.Expr) -> str | int | None:
    """Return the name of a column, or an integer of Spark's INT; None for all else."""
    if isinstance(value, exp.Column) and not value.table:
        return value.name
    if isinstance(value, exp.Literal | exp.Neg) and value.is_int:
        number = int(value.to_py())
        return number if abs(number) <= _MOST_INT else None
    return None
