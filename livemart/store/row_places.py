"""Finds the rows behind a row, in the order of a query: ties, NULLs and both directions included.

Used by the snapshot view to go on where a page ended. A place is the values of the row's order
columns, so a page costs the same wherever it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from livemart.store.column_types import in_order
from livemart.store.schema import ROW_HASH, bag_column
from livemart.store.served import ServedModel


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row in the order of a query.

    `values`: of `order_columns`. `taken`: in a model without key, how many of the equal rows come
    before the next one; else 0.
    """

    values: tuple[Any, ...]
    taken: int = 0


def order_columns(served: ServedModel, order_by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that put rows in one order: those asked for, then the key or the hash."""
    last = served.row_key or (bag_column(served, ROW_HASH),)
    return tuple(dict.fromkeys([*order_by, *last]))


def is_down(name: str, descending: bool | Collection[str]) -> bool:
    """Return True if a column goes down; `descending`: all do, or those that do."""
    return descending if isinstance(descending, bool) else name in descending


def rows_behind(
    table: sa.Table,
    names: Sequence[str],
    place: RowPlace,
    descending: bool | Collection[str],
    dialect: str,
) -> sa.ColumnElement[bool]:
    """Return the predicate of the rows behind a place; the row itself too, if it was taken in part.

    NULL comes before all values, in a column that goes down behind them.

    Args:
        table: of the model.
        names: the order columns.
        place: the values of these columns.
        descending: those that go down.
        dialect: the database of the table.
    """
    columns = [table.c[name] for name in names]
    values = [
        sa.bindparam(f"place_{number}", value, type_=column.type)
        for number, (column, value) in enumerate(zip(columns, place.values, strict=True))
    ]
    shown = [in_order(column, dialect) for column in columns]
    is_plain = not any(
        column.nullable or is_down(name, descending)
        for name, column in zip(names, columns, strict=True)
    )
    if is_plain and not place.taken:
        # An index finds the first of these rows; of the form below it does not.
        return sa.tuple_(*shown) > sa.tuple_(*values)
    behind: sa.ColumnElement[bool] = sa.true() if place.taken else sa.false()
    for number in reversed(range(len(columns))):
        column, value = shown[number], values[number]
        is_null = place.values[number] is None
        if is_down(names[number], descending):
            further = sa.false() if is_null else sa.or_(column < value, column.is_(None))
        else:
            further = column.is_not(None) if is_null else column > value
        is_same = column.is_(None) if is_null else column == value
        behind = sa.or_(further, sa.and_(is_same, behind))
    return behind
