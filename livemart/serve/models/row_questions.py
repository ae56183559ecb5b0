"""Reads which rows of a model a query asks for, which columns of them and in which order.

The forms are those of PostgREST: `amount=gte.5`, `select=id,amount`, `order=amount.desc`. A column
that is named like a parameter of the path is out of reach of a condition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import cast, get_args

from livemart.errors import nearest
from livemart.serve.http.problems import ProblemError
from livemart.store.predicates import ColumnCondition, Operator
from livemart.store.served import ServedModel
from livemart.store.value_forms import parse_served_value

# A database takes so many parameters: SQLite 32,766, PostgreSQL 65,535.
_MOST_VALUES_IN_ALL = 10_000
# SQLite nests a condition in the next, up to a depth of 1,000.
_MOST_CONDITIONS = 50
_MOST_VALUES = 1_000
_FORMS = "eq.5, neq.5, gt.5, gte.5, lt.5, lte.5, in.(5,6), is.null, is.not_null"
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"()|([^",()]*)', re.DOTALL)
_ORDERED_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"(\.asc|\.desc|)|([^",()]*)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A query for rows of a model.

    `conditions`: all hold. `columns`: of each row, in this order. `order_by`: columns, before the
    key; `descending`: those of them that go down.
    """

    conditions: tuple[ColumnCondition, ...]
    columns: tuple[str, ...]
    order_by: tuple[str, ...]
    descending: tuple[str, ...]

    def columns_of(self, model: ServedModel) -> tuple[tuple[str, str], ...]:
        """Return name and kind of the columns of each row."""
        return tuple((name, model.kinds[name]) for name in self.columns)


def read_row_question(
    model: ServedModel,
    texts: Iterable[tuple[str, str]],
    select: str | None = None,
    order: str | None = None,
) -> RowQuestion:
    """Return the question that the texts of a query ask.

    Args:
        model: whose columns they name.
        texts: columns and what is asked of them; a column may come several times.
        select: columns, with commas between; all if None.
        order: columns, with commas between, each with `.asc` or `.desc` at its end or without.

    Raises:
        ProblemError: PARAMETER_WRONG.
    """
    conditions = tuple(_condition(model, column, text) for column, text in texts)
    if len(conditions) > _MOST_CONDITIONS:
        raise _wrong(f"found {len(conditions)} conditions, {_MOST_CONDITIONS} are the most")
    in_all = sum(len(it.value) for it in conditions if it.operator == "in")
    if in_all > _MOST_VALUES_IN_ALL:
        raise _wrong(f"found {in_all} values of lists, {_MOST_VALUES_IN_ALL:,} are the most")
    ordered = [_ordered(model, item) for item in ([] if order is None else _items("order", order))]
    if "json" in {model.kinds[name] for name, _ in ordered}:
        raise _wrong("order: a column of type json has no order")
    names = [name for name, _ in model.columns] if select is None else _items("select", select)
    for name in names:
        _require_column(model, "select", name)
    _require_once("select", names)
    _require_once("order", [name for name, _ in ordered])
    return RowQuestion(
        conditions,
        tuple(names),
        tuple(name for name, _ in ordered),
        tuple(name for name, is_descending in ordered if is_descending),
    )


def _condition(model: ServedModel, column: str, text: str) -> ColumnCondition:
    kind = model.kinds[column]
    operator, _, value = text.partition(".")
    if operator == "is" and value in ("null", "not_null"):
        return ColumnCondition(column, "is", value == "null")
    if operator not in get_args(Operator) or operator == "is":
        raise _wrong(f"{column}: write one of {_FORMS}; found {text[:80]}")
    compared = cast(Operator, operator)
    try:
        if operator != "in":
            return ColumnCondition(column, compared, parse_served_value(kind, value))
        if not (value.startswith("(") and value.endswith(")")):
            raise _wrong(f"{column}: write a list as in.(5,6); found {text[:80]}")
        items = _items(column, value[1:-1]) if value != "()" else []
        if len(items) > _MOST_VALUES:
            raise _wrong(f"{column}: found {len(items)} values, {_MOST_VALUES:,} are the most")
        return ColumnCondition(
            column, compared, tuple(parse_served_value(kind, item) for item in items)
        )
    except ValueError as error:
        raise _wrong(f"{column}: {str(error)[:120]}") from None


def _ordered(model: ServedModel, item: str) -> tuple[str, bool]:
    """Return a column, and whether it goes down; the name itself may end like a direction."""
    name, _, direction = item.rpartition(".")
    if item in model.kinds or direction not in ("asc", "desc"):
        name, direction = item, "asc"
    _require_column(model, "order", name)
    return name, direction == "desc"


def _items(name: str, text: str) -> list[str]:
    """Return the items of a list; one in quotes may hold commas, and a quote behind a backslash.

    In an order, a direction may follow the quotes: `"a,b".desc`.
    """
    items, place = [], 0
    while True:
        item = (_ORDERED_ITEM if name == "order" else _ITEM).match(text, place)
        assert item is not None
        items.append(item[3] if item[1] is None else _ESCAPED.sub(r"\1", item[1]) + item[2])
        place = item.end()
        if place == len(text):
            return items
        if text[place] != ",":
            raise _wrong(
                f'{name}: put an item with one of ",() in quotes: "a,b"; found {text[:80]}'
            )
        place += 1


def _require_column(model: ServedModel, parameter: str, name: str) -> None:
    if name not in model.kinds:
        columns = ", ".join(model.kinds)
        raise _wrong(
            f"{parameter}: no column {name[:80]}{nearest(name[:80], model.kinds)}; "
            f"columns: {columns}"
        )


def _require_once(parameter: str, names: Sequence[str]) -> None:
    # On the event loop: a query of 64 KiB may name 30,000 columns.
    name, times = max(Counter(names).items(), key=itemgetter(1), default=("", 0))
    if times > 1:
        raise _wrong(f"{parameter}: name {name} once")


def _wrong(detail: str) -> ProblemError:
    return ProblemError("PARAMETER_WRONG", detail)
