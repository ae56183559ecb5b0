"""Selects the rows that a reader gets: those of its tenants, with these values, in this time.

Used by every query for rows and changes of a served model. Only the functions here hold the tenant
rule, and each asks whose rows they are.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, Literal, Required, TypedDict, Unpack

import sqlalchemy as sa

from livemart.store.column_types import in_order
from livemart.store.row_places import RowPlace
from livemart.store.schema import CHANGES
from livemart.store.served import ServedModel
from livemart.store.value_forms import parse_served_value

# A time or date column, and a moment.
Bound = tuple[str, datetime]
Operator = Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "is"]
COMPARE = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


@dataclass(frozen=True, slots=True)
class ColumnCondition:
    """A condition on the value of a column; NULL fulfils only `is`.

    `value` is of the column's kind; for `in` a tuple of them; for `is` whether it must be NULL.
    """

    column: str
    operator: Operator
    value: Any


class AskedRows(TypedDict, total=False):
    """The rows of a model that a reader asks for; see `SnapshotView.row_slices`."""

    tenants: Required[frozenset[str] | None]
    equals: Mapping[str, Any] | None
    since: Bound | None
    until: Bound | None
    order_by: Sequence[str]
    limit: int | None
    descending: bool | Collection[str]
    columns: Sequence[str] | None
    conditions: Sequence[ColumnCondition]
    behind: RowPlace | None


def row_predicates(
    table: sa.Table, served: ServedModel, dialect: str, **asked: Unpack[AskedRows]
) -> list[sa.ColumnElement[bool]]:
    """Return the predicates of all rows of an answer; order, limit and place are none of them.

    Args:
        table: of the model.
        served: the model.
        dialect: the database of the table.
        asked: the rows.
    """
    name = served.tenant_column
    column, kind = (None, "") if name is None else (table.c[name], served.kinds[name])
    predicates = _tenant_predicates(column, kind, asked["tenants"])
    predicates += [table.c[name] == value for name, value in (asked.get("equals") or {}).items()]
    for is_start, bound in ((True, asked.get("since")), (False, asked.get("until"))):
        if bound is not None:
            column_name, moment = bound
            predicates.append(_time_predicate(table.c[column_name], moment, is_start=is_start))
    conditions = asked.get("conditions", ())
    return predicates + [_predicate(table.c[it.column], it, dialect) for it in conditions]


def change_predicates(
    served: ServedModel, tenants: frozenset[str] | None
) -> list[sa.ColumnElement[bool]]:
    """Return the predicates of all changes of an answer; `tenants`: whose rows, None for all."""
    column = None if served.tenant_column is None else CHANGES.c.tenant
    return [CHANGES.c.model == served.name, *_tenant_predicates(column, "string", tenants)]


def _tenant_predicates(
    column: sa.ColumnElement[Any] | None, kind: str, tenants: frozenset[str] | None
) -> list[sa.ColumnElement[bool]]:
    """Return the predicate of rows of the tenants: no column, no row. None for all rows."""
    if tenants is None:
        return []
    return [sa.false() if column is None else column.in_(tenant_ids(kind, tenants))]


def tenant_ids(kind: str, tenants: frozenset[str]) -> list[Any]:
    """Return ids in the column's own type; a text that does not write an id is left out."""
    ids = []
    for tenant in sorted(tenants):
        try:
            tenant_id = parse_served_value(kind, tenant)
        except ValueError:
            continue
        if str(tenant_id) == tenant:
            ids.append(tenant_id)
    return ids


def _predicate(
    column: sa.ColumnElement[Any], condition: ColumnCondition, dialect: str
) -> sa.ColumnElement[bool]:
    if condition.operator == "is":
        return column.is_(None) if condition.value else column.is_not(None)
    is_list = condition.operator == "in"
    value = sa.bindparam(None, condition.value, type_=column.type, expanding=is_list)
    # Values are compared as they are sorted.
    shown = in_order(column, dialect)
    if is_list:
        return shown.in_(value)
    compared: sa.ColumnElement[bool] = COMPARE[condition.operator](shown, value)
    return compared


def _time_predicate(
    column: sa.ColumnElement[Any], moment: datetime, *, is_start: bool
) -> sa.ColumnElement[bool]:
    """Return the predicate of the times from a moment on, or before it; a date is its midnight."""
    bound: Any = moment.astimezone(UTC)
    is_beside = False
    if isinstance(column.type, sa.Date):
        is_beside = bound.time() != time.min
        bound = bound.date()
    compare: Operator = "gt" if is_start else "lt"
    if is_start != is_beside:
        compare = "gte" if is_start else "lte"
    compared: sa.ColumnElement[bool] = COMPARE[compare](column, bound)
    return compared
