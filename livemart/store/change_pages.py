"""Reads the changes of a model behind a position, in pages that end between two snapshots.

Used by the snapshot view. Behind a position that the store does not know there is a reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.change_conditions import row_test, seen_as
from livemart.store.positions import Position, mark_of
from livemart.store.predicates import ColumnCondition, change_predicates, change_values
from livemart.store.schema import CHANGES, PUBLISHED
from livemart.store.served import Change, ChangePage, Published, ServedModel
from livemart.store.store import StoredModel

_ORDER = (CHANGES.c.snapshot_id, CHANGES.c.position)


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
        values = change_values(tenants)
        taken = limit if most is None else min(limit, most)
        rows = connection.execute(query.limit(taken + 1), values).all()
        if most is not None and len(rows) > most:
            return ChangePage("many", (), 0, after.snapshot_id, newest.epoch, before, before)
        if len(rows) > limit:
            # The last snapshot of the page may go on behind it: leave it out, or take it whole.
            first, last = rows[0].snapshot_id, rows[-1].snapshot_id
            if first == last:
                whole = query.where(CHANGES.c.snapshot_id == first)
                rows = connection.execute(whole, values).all()
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
        *change_predicates(served, is_for_all=tenants is None),
        CHANGES.c.snapshot_id > after.snapshot_id,
    )
    if not after.within:
        return query
    # An index finds the first snapshot; the few changes of it that are known are passed over.
    is_rest = sa.or_(CHANGES.c.snapshot_id > after.within, CHANGES.c.position > after.position)
    return query.where(CHANGES.c.snapshot_id >= after.within, is_rest)
