"""Which rows a reader gets: of its tenants, with these values, in this time.

The tenant predicate is made here, once, for rows and for changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from livemart.store.schema import CHANGES
from livemart.store.served import ServedModel
from livemart.store.values import parse_value


def row_predicates(
    table: sa.Table,
    served: ServedModel,
    tenants: frozenset[str] | None,
    equals: Mapping[str, Any],
    since: tuple[str, datetime] | None,
    until: tuple[str, datetime] | None,
) -> list[sa.ColumnElement[bool]]:
    """Return what all rows of an answer fulfil; see `SnapshotView.rows`."""
    found: list[sa.ColumnElement[bool]] = []
    if tenants is not None:
        name = served.tenant_column
        found.append(
            sa.false() if name is None else _is_one_of(table.c[name], served.kinds[name], tenants)
        )
    for name, value in equals.items():
        column = table.c[name]
        found.append(column.is_(None) if value is None else column == value)
    if since is not None:
        start, bound = _bound(table, since)
        found.append(start >= bound)
    if until is not None:
        end, bound = _bound(table, until)
        found.append(end < bound)
    return found


def span_predicates(
    table: sa.Table, served: ServedModel, time: str, *, has_end: bool
) -> list[sa.ColumnElement[bool]]:
    """Return what the rows of tenants in a span of time fulfil, for the values of `span_values`.

    A statement of these is made once: to make it anew takes longer than to read a few rows.
    """
    name, column = served.tenant_column, table.c[time]
    found = [
        sa.false() if name is None else table.c[name].in_(sa.bindparam("tenants", expanding=True)),
        column >= sa.bindparam("since", type_=column.type),
    ]
    if has_end:
        found.append(column < sa.bindparam("until", type_=column.type))
    return found


def span_values(
    table: sa.Table,
    served: ServedModel,
    tenants: frozenset[str],
    time: str,
    since: datetime,
    until: datetime | None,
) -> dict[str, Any]:
    """Return the values that a statement of `span_predicates` is executed with."""
    name = served.tenant_column
    values = {
        "tenants": [] if name is None else _ids(served.kinds[name], tenants),
        "since": _bound(table, (time, since))[1],
    }
    if until is not None:
        values["until"] = _bound(table, (time, until))[1]
    return values


def change_predicates(
    served: ServedModel, tenants: frozenset[str] | None
) -> list[sa.ColumnElement[bool]]:
    """Return what all changes of an answer fulfil."""
    found = [CHANGES.c.model == served.name]
    if tenants is not None:
        is_ours = _is_one_of(CHANGES.c.tenant, "string", tenants)
        found.append(sa.false() if served.tenant_column is None else is_ours)
    return found


def _is_one_of(
    column: sa.ColumnElement[Any], kind: str, tenants: frozenset[str]
) -> sa.ColumnElement[bool]:
    return column.in_(_ids(kind, tenants))


def _ids(kind: str, tenants: frozenset[str]) -> list[Any]:
    """Return ids in the column's own type; a text that is not how an id is written is nobody's."""
    values = []
    for tenant in sorted(tenants):
        try:
            value = parse_value(kind, tenant)
        except ValueError:
            continue
        if str(value) == tenant:
            values.append(value)
    return values


def _bound(table: sa.Table, given: tuple[str, datetime]) -> tuple[sa.ColumnElement[Any], object]:
    """Return the column and what to compare it with; a date is its midnight in UTC."""
    name, moment = given
    column = table.c[name]
    moment = moment.astimezone(UTC)
    if not isinstance(column.type, sa.Date):
        return column, moment
    day: date = moment.date()
    is_whole = moment.time() == datetime.min.time() or day == date.max
    return column, day if is_whole else day + timedelta(days=1)
