"""Selects the rows that a reader gets: those of its tenants, with these values, in this time.

Used by every query for rows and changes of a served model. Only `tenant_predicate` and `tenant_ids`
hold the tenant rule. A query is executed with the values that its predicates name: without them it
fails, so it never shows more than it should.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from livemart.store.column_types import in_order
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


def row_predicates(
    table: sa.Table,
    served: ServedModel,
    *,
    is_for_all: bool,
    equals: Mapping[str, Any] | None = None,
    since: str | None = None,
    until: str | None = None,
    conditions: Sequence[ColumnCondition] = (),
    dialect: str = "",
) -> list[sa.ColumnElement[bool]]:
    """Return the predicates of all rows of an answer, on the parameters of `row_values`.

    Args:
        table: of the model.
        served: the model.
        is_for_all: rows of all tenants.
        equals: columns and the values they must have; None is NULL.
        since: the column with a first moment.
        until: the column with a moment that is not included.
        conditions: further ones, that all hold.
        dialect: the database of the table; needed with conditions.
    """
    predicates: list[sa.ColumnElement[bool]] = []
    if not is_for_all:
        name = served.tenant_column
        predicates.append(tenant_predicate(None if name is None else table.c[name]))
    for number, (name, value) in enumerate((equals or {}).items()):
        column = table.c[name]
        is_equal = column == sa.bindparam(f"equals_{number}", type_=column.type)
        predicates.append(column.is_(None) if value is None else is_equal)
    if since is not None:
        column = table.c[since]
        predicates.append(column >= sa.bindparam("since", type_=column.type))
    if until is not None:
        column = table.c[until]
        predicates.append(column < sa.bindparam("until", type_=column.type))
    for number, condition in enumerate(conditions):
        predicates.append(_predicate(table.c[condition.column], condition, number, dialect))
    return predicates


def row_values(
    table: sa.Table,
    served: ServedModel,
    tenants: frozenset[str] | None,
    *,
    equals: Mapping[str, Any] | None = None,
    since: Bound | None = None,
    until: Bound | None = None,
    conditions: Sequence[ColumnCondition] = (),
) -> dict[str, Any]:
    """Return the values of the parameters of `row_predicates`."""
    values: dict[str, Any] = {
        f"equals_{number}": value for number, value in enumerate((equals or {}).values())
    }
    for number, condition in enumerate(conditions):
        if condition.operator != "is":
            values[f"condition_{number}"] = condition.value
    if tenants is not None:
        kind = served.kinds.get(served.tenant_column or "", "")
        values["tenants"] = tenant_ids(kind, tenants)
    for name, bound in (("since", since), ("until", until)):
        if bound is not None:
            values[name] = _bound_value(table, bound)
    return values


def change_predicates(served: ServedModel, *, is_for_all: bool) -> list[sa.ColumnElement[bool]]:
    """Return the predicates of all changes of an answer, on the parameters of `change_values`."""
    predicates = [CHANGES.c.model == served.name]
    if not is_for_all:
        column = None if served.tenant_column is None else CHANGES.c.tenant
        predicates.append(tenant_predicate(column))
    return predicates


def change_values(tenants: frozenset[str] | None) -> dict[str, Any]:
    """Return the values of the parameters of `change_predicates`."""
    return {} if tenants is None else {"tenants": tenant_ids("string", tenants)}


def tenant_predicate(column: sa.ColumnElement[Any] | None) -> sa.ColumnElement[bool]:
    """Return the predicate of rows of the tenants in parameter `tenants`; no column, no row."""
    if column is None:
        return sa.false()
    return column.in_(sa.bindparam("tenants", expanding=True))


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
    column: sa.ColumnElement[Any], condition: ColumnCondition, number: int, dialect: str
) -> sa.ColumnElement[bool]:
    if condition.operator == "is":
        return column.is_(None) if condition.value else column.is_not(None)
    is_list = condition.operator == "in"
    value = sa.bindparam(f"condition_{number}", type_=column.type, expanding=is_list)
    # Values are compared as they are sorted.
    shown = in_order(column, dialect)
    if is_list:
        return shown.in_(value)
    compared: sa.ColumnElement[bool] = COMPARE[condition.operator](shown, value)
    return compared


def _bound_value(table: sa.Table, bound: Bound) -> object:
    """Return the value to compare the column with; a date is compared with its midnight in UTC."""
    name, moment = bound
    moment = moment.astimezone(UTC)
    if not isinstance(table.c[name].type, sa.Date):
        return moment
    day: date = moment.date()
    is_whole = moment.time() == datetime.min.time() or day == date.max
    return day if is_whole else day + timedelta(days=1)
