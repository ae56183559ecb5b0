"""Reads the changes of a model behind a position, in pages that end between two snapshots.

Used by the snapshot view. Behind a position that the store does not know there is a reset.

A reader who has only the rows that fulfil the conditions of a query gets the changes of exactly
these rows. A row that begins to fulfil them is an insert, one that no longer does a delete.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.positions import Position, mark_of
from livemart.store.predicates import COMPARE, ColumnCondition, change_predicates
from livemart.store.schema import CHANGES, PUBLISHED
from livemart.store.served import Change, ChangePage, Published, ServedModel
from livemart.store.store import StoredModel
from livemart.store.value_forms import parse_served_value

_ORDER = (CHANGES.c.snapshot_id, CHANGES.c.position)
# Returns True if a row, as the change log holds it, fulfils all conditions.
Judgment = Callable[[Mapping[str, Any]], bool]


def known_mark(connection: Connection, stored: StoredModel, snapshot_id: int) -> str | None:
    """Return the mark of a position at a snapshot; None if the changes since are not known."""
    epoch = _epoch_of(connection, snapshot_id)
    if epoch is None or snapshot_id < stored.copied_at:
        return None
    return mark_of(epoch, stored.layout.table_name)


def read_change_page(
    connection: Connection,
    newest: Published,
    stored: StoredModel,
    after: Position,
    tenants: frozenset[str] | None,
    limit: int,
    *,
    most: int | None = None,
    conditions: Sequence[ColumnCondition] = (),
) -> ChangePage:
    """Return the changes of a model behind a position; see `SnapshotView.changes`."""
    table, served = stored.layout.table_name, stored.layout.model
    before = known_mark(connection, stored, after.snapshot_id)
    is_known = before is not None and after.mark in (None, before)
    if before is None or not is_known or after.within > newest.snapshot_id:
        mark = mark_of(newest.epoch, table)
        return ChangePage("reset", (), 0, newest.snapshot_id, newest.epoch, after.mark or "", mark)
    rows: Sequence[sa.Row[Any]] = ()
    upto = newest.snapshot_id
    if after.snapshot_id != upto:
        query = _later(served, after, tenants).order_by(*_ORDER)
        taken = limit if most is None else min(limit, most)
        rows = connection.execute(query.limit(taken + 1)).all()
        if most is not None and len(rows) > most:
            return ChangePage("many", (), 0, after.snapshot_id, newest.epoch, before, before)
        if len(rows) > limit:
            # The last snapshot of the page may go on behind it: leave it out, or take it whole.
            first, last = rows[0].snapshot_id, rows[-1].snapshot_id
            if first == last:
                whole = query.where(CHANGES.c.snapshot_id == first)
                rows = connection.execute(whole).all()
            else:
                rows = [row for row in rows if row.snapshot_id < last]
            upto = rows[-1].snapshot_id
    read = (
        (Change(row.model, row.snapshot_id, row.position, row.op, row.row), row.replaced)
        for row in rows
    )
    if conditions:
        fulfils = row_test(served, conditions)
        seen = (seen_as(change, replaced, fulfils) for change, replaced in read)
        changes = tuple(change for change in seen if change is not None)
    else:
        changes = tuple(change for change, _ in read)
    epoch = _epoch_of(connection, upto) or newest.epoch
    mark = mark_of(epoch, table)
    return ChangePage("changes", changes, len(rows), upto, epoch, before, mark)


def _epoch_of(connection: Connection, snapshot_id: int) -> str | None:
    """Return the epoch of a snapshot; None if it is not kept."""
    query = sa.select(PUBLISHED.c.epoch).where(PUBLISHED.c.snapshot_id == snapshot_id)
    epoch: str | None = connection.execute(query).scalar()
    return epoch


def _later(served: ServedModel, after: Position, tenants: frozenset[str] | None) -> sa.Select[Any]:
    """Return the query of all changes behind a position, in no order."""
    query = sa.select(CHANGES).where(
        *change_predicates(served, tenants),
        CHANGES.c.snapshot_id > after.snapshot_id,
    )
    if not after.within:
        return query
    # An index finds the first snapshot; the few changes of it that are known are passed over.
    is_rest = sa.or_(CHANGES.c.snapshot_id > after.within, CHANGES.c.position > after.position)
    return query.where(CHANGES.c.snapshot_id >= after.within, is_rest)


def row_test(served: ServedModel, conditions: Sequence[ColumnCondition]) -> Judgment:
    """Return the test of rows by conditions; see `ColumnCondition`."""
    kinds = served.kinds
    tests = [
        (condition.column, _value_test(kinds[condition.column], condition))
        for condition in conditions
    ]
    return lambda row: all(test(row[name]) for name, test in tests)


def seen_as(change: Change, before: Mapping[str, Any] | None, fulfils: Judgment) -> Change | None:
    """Return a change for a reader of the rows that fulfil conditions; None if it sees none.

    Args:
        change: of a row.
        before: the values that an update replaced.
        fulfils: the test of a row.
    """
    is_in = fulfils(change.row)
    if change.op != "update":
        return change if is_in else None
    old = {**change.row, **(before or {})}
    was_in = fulfils(old)
    if was_in and is_in:
        return change
    if is_in:
        return replace(change, op="insert")
    return replace(change, op="delete", row=old) if was_in else None


def _value_test(kind: str, condition: ColumnCondition) -> Callable[[Any], bool]:
    if condition.operator == "is":
        return lambda plain: (plain is None) is condition.value
    if condition.operator == "in":
        values = {_in_order(value) for value in condition.value}
        return lambda plain: plain is not None and _stored(kind, plain) in values
    compare, bound = COMPARE[condition.operator], _in_order(condition.value)
    return lambda plain: plain is not None and bool(compare(_stored(kind, plain), bound))


def _stored(kind: str, plain: Any) -> Any:
    """Return the compared form of a value that the change log holds as JSON."""
    is_written = isinstance(plain, str) and kind != "string"
    return _in_order(parse_served_value(kind, plain) if is_written else plain)


def _in_order(value: Any) -> Any:
    """Return a key by which Python compares as the databases do: NaN is above all numbers."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value
