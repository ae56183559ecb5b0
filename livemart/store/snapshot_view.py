"""Reads one snapshot of the serving store: rows, packed numbers, changes since another.

Used by the server for every answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Unpack

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.column_types import in_order, write_json
from livemart.store.descriptions import read_description
from livemart.store.packed import Packed, pack, unpack
from livemart.store.pages import read_pages
from livemart.store.positions import Position, mark_of
from livemart.store.predicates import AskedRows, ColumnCondition, change_predicates, row_predicates
from livemart.store.row_places import is_down, order_columns, rows_behind
from livemart.store.schema import CHANGES, PUBLISHED, ROW_COUNT, Layout, bag_column, served_table
from livemart.store.seen_changes import row_test, seen_as
from livemart.store.served import (
    Change,
    ChangePage,
    ModelDescription,
    ProjectPages,
    Published,
    ServedModel,
)
from livemart.store.store import StoredModel

# Rows that are read at once.
_SLICE = 1_000
_ORDER = (CHANGES.c.snapshot_id, CHANGES.c.position)
# The length of an instant as text, up to the second.
_SECONDS_LONG = 19


class SnapshotView:
    """One snapshot, in one read transaction. Not to be shared between threads.

    `readings` ends before the transaction. A reading of rows that an error holds would else keep
    SQLite in this snapshot, and its end would break a later transaction of PostgreSQL.
    """

    def __init__(
        self,
        connection: Connection,
        published: Published,
        models: Mapping[str, StoredModel],
        readings: ExitStack,
    ) -> None:
        self.published = published
        self._connection = connection
        self._readings = readings
        self._dialect = connection.dialect.name
        self._models = models

    def models(self) -> Mapping[str, ServedModel]:
        """Return the served models, by name."""
        return {name: stored.layout.model for name, stored in self._models.items()}

    def description(self, model: str) -> ModelDescription | None:
        """Return how the project describes a model; None if the store does not know it."""
        return read_description(self._connection, model)

    def pages(self) -> ProjectPages:
        """Return the look of the project's pages; names may be of models not served."""
        return read_pages(self._connection)

    def row_count(self, model: str) -> int:
        """Return how many rows a model has, those of all tenants together.

        Raises:
            KeyError: the model is not served.
        """
        return self._models[model].row_count

    def changed_at(self, model: str, tenants: frozenset[str] | None) -> datetime | None:
        """Return when the newest snapshot was published in which rows of a model changed.

        Args:
            model: name of a served model.
            tenants: whose rows; None for all.

        Returns:
            None if that is longer ago than changes are kept, or not known of these tenants.

        Raises:
            KeyError: the model is not served.
        """
        stored = self._models[model]
        query = sa.select(sa.func.max(CHANGES.c.snapshot_id)).where(
            *change_predicates(stored.layout.model, tenants)
        )
        newest = self._connection.execute(query).scalar()
        # A copy of all rows at once records no single change: whose rows changed is not known.
        snapshot_id = max(newest or 0, stored.copied_at if tenants is None else 0)
        query = sa.select(PUBLISHED.c.published_at).where(PUBLISHED.c.snapshot_id == snapshot_id)
        published_at: datetime | None = self._connection.execute(query).scalar()
        return published_at

    def mark(self, model: str) -> str:
        """Return the mark of a position at this snapshot in the changes of a model.

        Raises:
            KeyError: the model is not served.
        """
        return mark_of(self.published.epoch, self._models[model].layout.table_name)

    def knows_changes(self, model: str, since: Position) -> bool:
        """Return True if all changes of a model since a position are kept.

        Args:
            model: name of a served model.
            since: the snapshot, and the mark that it had.

        Raises:
            KeyError: the model is not served.
        """
        mark = self._known_mark(self._models[model], since.snapshot_id)
        return mark is not None and since.mark == mark

    def is_unchanged(self, model: str, since: Position, tenants: frozenset[str] | None) -> bool:
        """Return True if a model has the rows that it had at a position.

        Args:
            model: name of a served model.
            since: the snapshot, and the mark that it had.
            tenants: whose rows; None for all.

        Returns:
            False, too, if the changes since then are not known.

        Raises:
            KeyError: the model is not served.
        """
        if not self.knows_changes(model, since):
            return False
        served = self._models[model].layout.model
        changes = sa.select(CHANGES.c.position).where(
            *change_predicates(served, tenants), CHANGES.c.snapshot_id > since.snapshot_id
        )
        return self._connection.execute(changes.limit(1)).first() is None

    def changes(
        self,
        model: str,
        after: Position,
        tenants: frozenset[str] | None,
        limit: int,
        *,
        most: int | None = None,
        conditions: Sequence[ColumnCondition] = (),
    ) -> ChangePage:
        """Return the changes of a model behind a position.

        Args:
            model: name of a served model.
            after: how far the caller is. In another history than that of its mark its id says
                nothing; None: it is of this one.
            tenants: whose rows; None for all.
            limit: where to end the page; whole snapshots only, so one snapshot may exceed it.
            most: changes that are read at all, up to `limit`; if there are more, it is "many".
            conditions: the changes are those of the rows that fulfil them all.

        Raises:
            KeyError: the model is not served, or has no such column.
        """
        stored, newest = self._models[model], self.published
        table, served = stored.layout.table_name, stored.layout.model
        before = self._known_mark(stored, after.snapshot_id)
        is_known = before is not None and after.mark in (None, before)
        if before is None or not is_known or after.within > newest.snapshot_id:
            behind = (newest.snapshot_id, newest.epoch, after.mark or "")
            return ChangePage("reset", (), 0, *behind, mark_of(newest.epoch, table))
        rows: Sequence[sa.Row[Any]] = ()
        upto = newest.snapshot_id
        if after.snapshot_id != upto:
            query = _later(served, after, tenants).order_by(*_ORDER)
            taken = limit if most is None else min(limit, most)
            rows = self._connection.execute(query.limit(taken + 1)).all()
            if most is not None and len(rows) > most:
                return ChangePage("many", (), 0, after.snapshot_id, newest.epoch, before, before)
            if len(rows) > limit:
                # The last snapshot of the page may go on behind it: leave it out, or take it whole.
                first, last = rows[0].snapshot_id, rows[-1].snapshot_id
                if first == last:
                    whole = query.where(CHANGES.c.snapshot_id == first)
                    rows = self._connection.execute(whole).all()
                else:
                    rows = [row for row in rows if row.snapshot_id < last]
                upto = rows[-1].snapshot_id
        fulfils = row_test(served, conditions, self._connection.dialect.name)
        read = (
            (Change(row.model, row.snapshot_id, row.position, row.op, row.row), row.replaced)
            for row in rows
        )
        seen = (seen_as(change, replaced, fulfils) for change, replaced in read)
        changes = tuple(change for change in seen if change is not None)
        epoch = self._epoch_of(upto) or newest.epoch
        mark = mark_of(epoch, table)
        return ChangePage("changes", changes, len(rows), upto, epoch, before, mark)

    def _known_mark(self, stored: StoredModel, snapshot_id: int) -> str | None:
        """Return the mark of a position at a snapshot; None if the changes since are not known."""
        epoch = self._epoch_of(snapshot_id)
        if epoch is None or snapshot_id < stored.copied_at:
            return None
        return mark_of(epoch, stored.layout.table_name)

    def _epoch_of(self, snapshot_id: int) -> str | None:
        """Return the epoch of a snapshot; None if it is not kept."""
        query = sa.select(PUBLISHED.c.epoch).where(PUBLISHED.c.snapshot_id == snapshot_id)
        epoch: str | None = self._connection.execute(query).scalar()
        return epoch

    def rows(self, model: str, **asked: Unpack[AskedRows]) -> list[dict[str, Any]]:
        """Return rows of a model, all at once; see `row_slices`."""
        return list(chain.from_iterable(self.row_slices(model, **asked)))

    def row_slices(
        self, model: str, *, size: int = _SLICE, **asked: Unpack[AskedRows]
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield rows of a model, a few at a time.

        Args:
            model: name of a served model.
            size: how many are in memory at once.
            tenants: whose rows; None for all. A model without tenant column has no tenant's rows.
            equals: columns and the values they must have; None is NULL.
            since: a time or date column, and the moment from which on.
            until: a time or date column, and the moment up to which, not included.
            order_by: columns; the row key comes after them, so that the order is always the same.
            limit: of rows.
            descending: the order of `order_by` and of the key after it; or the columns alone that
                go down. NULL comes before all values, or behind them in a column that goes down.
            columns: which ones to read; all if None. Those of `order_columns` can be named, too.
            conditions: further ones on the rows.
            behind: a row of this order; those behind it are returned.

        Yields:
            Rows with the model's columns: Decimal, datetime (UTC), date, int, float, str, bool,
            bytes, None, or JSON values.

        Raises:
            KeyError: the model is not served, or has no such column.
        """
        layout = self._models[model].layout
        table, served = served_table(layout), layout.model
        columns, limit, behind = asked.get("columns"), asked.get("limit"), asked.get("behind")
        descending = asked.get("descending", False)
        names = [name for name, _ in served.columns] if columns is None else list(columns)
        query = sa.select(*(table.c[name] for name in names))
        if not served.row_key:
            query = query.add_columns(table.c[bag_column(served, ROW_COUNT)])
        query = query.where(*row_predicates(table, served, self._dialect, **asked))
        in_turn = order_columns(served, asked.get("order_by", ()))
        for name in in_turn:
            column = table.c[name]
            ordered = in_order(column, self._dialect)
            if is_down(name, descending):
                ordered = ordered.desc().nulls_last() if column.nullable else ordered.desc()
            else:
                ordered = ordered.asc().nulls_first() if column.nullable else ordered.asc()
            query = query.order_by(ordered)
        taken = 0
        if behind is not None:
            query = query.where(rows_behind(table, in_turn, behind, descending, self._dialect))
            taken = behind.taken
        if limit is not None:
            query = query.limit(limit + 1 if taken else limit)
        # A few rows are not worth a cursor of PostgreSQL.
        is_long = limit is None or limit > size
        options = {"yield_per": size} if is_long else {}
        reading = self._connection.execute(query, execution_options=options)
        with self._readings.enter_context(reading) as result:
            if served.row_key:
                rows = (dict(zip(names, row, strict=True)) for row in result)
            else:
                # One row may count for millions.
                repeated = (row for row in result for _ in range(row[-1]))
                end = None if limit is None else taken + limit
                some_of_them = islice(repeated, taken, end)
                rows = (dict(zip(names, row[:-1], strict=True)) for row in some_of_them)
            while some := list(islice(rows, size)):
                yield some

    def packed(
        self,
        model: str,
        columns: tuple[str, ...],
        *,
        tenants: frozenset[str],
        time: str,
        since: datetime,
    ) -> dict[str, Packed]:
        """Return columns of many rows as whole numbers, by tenant; a tenant without rows is absent.

        Args:
            model: name of a served model. Rows of one without tenant column are no tenant's.
            columns: whole numbers, decimals or times.
            tenants: whose rows.
            time: a time or date column.
            since: the moment from which on.

        Returns:
            The values of each column, those of a row at the same place in all of them, in no order:
            see `unpack`.

        Raises:
            KeyError: the model is not served, or has no such column.
            ValueError: a column holds something else.
        """
        layout = self._models[model].layout
        table, served = served_table(layout), layout.model
        if served.tenant_column is None:
            return {}
        owner, dialect = table.c[served.tenant_column], self._dialect
        query = (
            sa.select(owner, *_packed_columns(layout, columns, dialect))
            .where(*row_predicates(table, served, dialect, tenants=tenants, since=(time, since)))
            .group_by(owner)
        )
        is_bag = not served.row_key
        return {
            str(row[0]): unpack(columns, row[1:], is_bag=is_bag)
            for row in self._connection.execute(query).all()
        }

    def firsts(
        self, model: str, column: str, *, tenants: frozenset[str], among: str
    ) -> dict[str, Any]:
        """Return the smallest value of a column by tenant, for the tenants with rows in `among`.

        One look into an index for each tenant, in one query for all; None if there are no values.

        Raises:
            KeyError: a model is not served, or has no such column.
        """
        theirs, ours = self._models[model].layout, self._models[among].layout
        inner, outer = theirs.model.tenant_column, ours.model.tenant_column
        if inner is None or outer is None:
            return {}
        table, among_table = served_table(theirs), served_table(ours)
        is_same = table.c[inner] == among_table.c[outer]
        first = sa.select(sa.func.min(table.c[column])).where(is_same).scalar_subquery()
        query = (
            sa.select(among_table.c[outer], first)
            .where(*row_predicates(among_table, ours.model, self._dialect, tenants=tenants))
            .group_by(among_table.c[outer])
        )
        return {str(tenant): value for tenant, value in self._connection.execute(query).all()}

    def changed_since(
        self, model: str, column: str, before: Published, tenants: frozenset[str]
    ) -> dict[str, datetime] | None:
        """Return, by tenant, the smallest value of a column in rows that changed since a snapshot.

        Args:
            model: name of a served model. Changes of one without tenant column are no tenant's.
            column: a time. Rows without it are left out.
            before: the snapshot. A row that changed counts with its old and its new value.
            tenants: whose rows.

        Returns:
            The value, to the second, by tenant; one without such rows is absent. None if the
            changes are not known: as with those of a push query, all rows must be read again.

        Raises:
            KeyError: the model is not served.
        """
        stored = self._models[model]
        served = stored.layout.model
        query = sa.select(PUBLISHED).where(PUBLISHED.c.snapshot_id == before.snapshot_id)
        snapshot_row = self._connection.execute(query).first()
        is_known = snapshot_row is not None and Published(**snapshot_row._mapping) == before
        # An update holds the new row only; and in a nested value the name could be another's.
        is_of_key = not served.row_key or column in served.row_key
        is_plain = "json" not in served.kinds.values()
        if not (is_known and is_of_key and is_plain) or before.snapshot_id < stored.copied_at:
            return None
        # A row is written in one way only, and a quote in a text is escaped: this is the column.
        label = f'{write_json(column)}:"'
        find = sa.func.strpos if self._dialect == "postgresql" else sa.func.instr
        row = sa.type_coerce(CHANGES.c.row, sa.Text)
        place = find(row, label)
        text = sa.func.min(sa.func.substr(row, place + len(label), _SECONDS_LONG))
        changes = (
            sa.select(CHANGES.c.tenant, text)
            .where(*change_predicates(served, tenants))
            .where(CHANGES.c.snapshot_id > before.snapshot_id, place > 0)
            .group_by(CHANGES.c.tenant)
        )
        return {
            str(tenant): datetime.fromisoformat(str(first)).replace(tzinfo=UTC)
            for tenant, first in self._connection.execute(changes).all()
        }


def _later(served: ServedModel, after: Position, tenants: frozenset[str] | None) -> sa.Select[Any]:
    """Return the query of all changes behind a position, in no order."""
    query = sa.select(CHANGES).where(
        *change_predicates(served, tenants), CHANGES.c.snapshot_id > after.snapshot_id
    )
    if not after.within:
        return query
    # An index finds the first snapshot; the few changes of it that are known are passed over.
    is_rest = sa.or_(CHANGES.c.snapshot_id > after.within, CHANGES.c.position > after.position)
    return query.where(CHANGES.c.snapshot_id >= after.within, is_rest)


@lru_cache(maxsize=64)
def _packed_columns(
    layout: Layout, columns: tuple[str, ...], dialect: str
) -> list[sa.ColumnElement[str]]:
    """Return the columns of `SnapshotView.packed`.

    They are made once: making them again takes longer than reading a few rows.
    """
    table, served = served_table(layout), layout.model
    packed = [pack(table.c[name], served.kinds[name], dialect) for name in columns]
    if not served.row_key:
        packed.append(pack(table.c[bag_column(served, ROW_COUNT)], "bigint", dialect))
    return packed
