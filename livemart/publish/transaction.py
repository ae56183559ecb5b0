"""Writes a snapshot into the serving store, inside one transaction.

Used by the publisher. A rebuilt model goes into a new table, the old one stays for readers of the
snapshot before; changes are kept for push queries for as long as `change_retention` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.arrow.bags import WEIGHT
from livemart.errors import first_lines
from livemart.publish.held_values import refuse_unheld
from livemart.publish.insert import KeyNotUniqueError
from livemart.publish.rows import RowChange, RowsDifferError, apply_change, fill
from livemart.publish.writes import ModelWrite, ServedTables, form_of
from livemart.state.snapshots import Snapshot
from livemart.store.connections import is_of_the_statement
from livemart.store.schema import CHANGES, MODELS, PUBLISHED, RETIRED, Layout, table_name
from livemart.store.served import Published, ServedModel
from livemart.store.store import StoredModel, StoreState, make_tables

# Above it readers take all rows again: a log as long as the table saves them nothing.
_LOGGED_ROWS = 100_000
_SLICE = 5_000
KEPT_SNAPSHOTS = 200
# Free pages of SQLite are filled again; when they are more than a half, so many go at a time.
_PAGES_GIVEN_BACK = 2_000


@dataclass(frozen=True, slots=True)
class Publishing:
    """How to publish.

    `tenant_column`: the column that says whose a row is, in each model that has it; None if no row
    is anybody's. `step` is called with the name of each place that the publication reaches:
    `publish.before`, `publish.in_transaction`, `publish.after`, and `publish.progress` in between.
    """

    tenant_column: str | None = None
    change_retention: timedelta = timedelta(hours=24)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    step: Callable[[str], None] = lambda _: None


@dataclass(eq=False)
class Transaction:
    """The writes of one publication."""

    connection: Connection
    state: StoreState
    snapshot: Snapshot
    tables: ServedTables
    how: Publishing
    rebuilt: list[str] = field(default_factory=list, init=False)
    refused: dict[str, str] = field(default_factory=dict, init=False)
    """By model, why the database does not take it."""

    def begin(self, *, is_wiped: bool) -> None:
        """Make the tables ready; drop the tables that the publication before this one retired."""
        if self.state.store_id is None:
            make_tables(self.connection)
            return
        _drop_retired(self.connection)
        if is_wiped:
            self.drop(self.state.models)
            for table in (PUBLISHED, CHANGES, MODELS):
                self.connection.execute(sa.delete(table))

    def write(self, write: ModelWrite) -> int:
        """Write a model's rows and changes; return how many rows changed.

        A model that the database does not take stays as it was, and is tried again with the next
        snapshot; the others go on.
        """
        try:
            with self.connection.begin_nested():
                return self._write(write)
        except Exception as error:
            if not is_of_the_statement(error):
                raise
            if self.connection.dialect.name == "sqlite" and not self._driver_is_inside():
                # A full disk, for one, ends the whole transaction, and the savepoint with it.
                raise
            self.refused[write.spec.name] = first_lines(getattr(error, "orig", None) or error)
            return 0

    def _driver_is_inside(self) -> bool:
        driver: Any = self.connection.connection.driver_connection
        return bool(driver.in_transaction)

    def _write(self, write: ModelWrite) -> int:
        if write.change is not None and write.stored is not None:
            refuse_unheld(write.stored.layout.model, write.change)
            try:
                with self.connection.begin_nested():
                    changes = apply_change(self.connection, write.stored.layout, write.change)
            except (RowsDifferError, KeyNotUniqueError):
                pass
            else:
                weights = pc.sum(write.change.column(WEIGHT)).as_py() or 0
                row_count = write.stored.row_count + weights
                is_logged = self._log(write.spec.name, changes)
                copied_at = write.stored.copied_at if is_logged else self.snapshot.snapshot_id
                self._keep(write, write.stored.layout, row_count, copied_at)
                return len(changes)
        return self._rebuild(write)

    def drop(self, names: Iterable[str]) -> None:
        """Stop serving models."""
        for name in names:
            self._retire(name)
            self.connection.execute(sa.delete(MODELS).where(MODELS.c.model == name))
            self._forget_changes(name)

    def finish(self, names: Mapping[str, str]) -> Published:
        """Point readers to the snapshot, forget old changes; return the published state.

        `names`: by unique id.
        """
        snapshot, now = self.snapshot, self.how.now()
        same = PUBLISHED.c.snapshot_id == snapshot.snapshot_id
        self.connection.execute(sa.delete(PUBLISHED).where(same))
        self.connection.execute(
            sa.insert(PUBLISHED).values(
                snapshot_id=snapshot.snapshot_id,
                as_of=snapshot.as_of,
                published_at=now,
                epoch=snapshot.epoch,
                checked_at=now,
                set_aside={
                    names.get(unique_id, unique_id): (
                        aside.since,
                        aside.refreshed_at and aside.refreshed_at.isoformat(),
                    )
                    for unique_id, aside in snapshot.set_aside.items()
                }
                | {name: (*self._since(name), why) for name, why in self.refused.items()},
                strategy_failures=self._strategy_failures(names),
            )
        )
        prune(self.connection, now, self.how.change_retention)
        _give_back_pages(self.connection)
        return Published(snapshot.snapshot_id, snapshot.as_of, now, snapshot.epoch, now)

    def _since(self, name: str) -> tuple[int, str | None]:
        """Return since which snapshot a refused model is not that of the others, and its age."""
        before = self.state.published
        aside = (before.set_aside or {}).get(name) if before else None
        if aside is not None:
            return aside[0], aside[1]
        is_stored = before is not None and name in self.state.models
        refreshed_at = before.published_at.isoformat() if before and is_stored else None
        return self.snapshot.snapshot_id, refreshed_at

    def _strategy_failures(self, names: Mapping[str, str]) -> dict[str, int]:
        """Return how often each model's strategy failed, this snapshot included, once."""
        before = self.state.published
        counts = Counter(before.strategy_failures or {}) if before else Counter[str]()
        is_counted = before is not None and before.snapshot_id == self.snapshot.snapshot_id
        for unique_id, state in self.snapshot.models.items():
            if state.reason == "STRATEGY_FAILED" and not is_counted:
                counts[names.get(unique_id, unique_id)] += 1
        return dict(counts)

    def _rebuild(self, write: ModelWrite) -> int:
        """Copy a model whole, into a new table; readers that follow its changes start again."""
        name = write.spec.name
        read = partial(self.tables.rows, write.spec.relation, write.state.version)
        model = form_of(write.spec, next(read()).schema, self.how.tenant_column)
        # Before a name is chosen: the old one may be free because the table was dropped.
        self._retire(name)
        layout = Layout(self._new_table_name(name), model)
        try:
            with self.connection.begin_nested():
                count = self._fill(layout, read())
        except KeyNotUniqueError:
            layout = Layout(layout.table_name, replace(model, row_key=()))
            count = self._fill(layout, read())
        self._keep(write, layout, count, self.snapshot.snapshot_id)
        self._forget_changes(name)
        self.rebuilt.append(name)
        return count

    def _fill(self, layout: Layout, slices: Iterable[pa.Table]) -> int:
        return fill(self.connection, layout, slices, lambda: self.how.step("publish.progress"))

    def _new_table_name(self, model: str) -> str:
        table_names = set(sa.inspect(self.connection).get_table_names())
        query = sa.select(RETIRED.c.table_name)
        retired: Sequence[str] = self.connection.execute(query).scalars().all()
        return table_name(model, table_names.union(retired))

    def _retire(self, model: str) -> None:
        """Leave a model's table to readers of the snapshot before, until the next publication."""
        stored = self.state.models.get(model)
        if stored is None:
            return
        name = stored.layout.table_name
        retired = sa.select(RETIRED).where(RETIRED.c.table_name == name)
        if self.connection.execute(retired).first() is None:
            self.connection.execute(sa.insert(RETIRED).values(table_name=name))

    def _keep(self, write: ModelWrite, layout: Layout, row_count: int, copied_at: int) -> None:
        model: ServedModel = layout.model
        row = StoredModel(
            layout=layout,
            relation=write.spec.relation,
            table_version=write.state.version,
            table_id=write.state.table_id,
            fingerprint=write.state.fingerprint,
            declared_key=write.spec.row_key,
            event_time=write.spec.event_time,
            row_count=row_count,
            copied_at=copied_at,
        )
        self.connection.execute(sa.delete(MODELS).where(MODELS.c.model == model.name))
        self.connection.execute(sa.insert(MODELS).values(row.to_row()))

    def _log(self, model: str, changes: Sequence[RowChange]) -> bool:
        """Keep changes for followers of the model; return False if they are too many."""
        if len(changes) > _LOGGED_ROWS:
            self._forget_changes(model)
            return False
        at = {"model": model, "snapshot_id": self.snapshot.snapshot_id}
        rows = [
            {
                **at,
                "position": index,
                "tenant": change.tenant,
                "op": change.op,
                "row": change.row,
                "replaced": change.replaced,
            }
            for index, change in enumerate(changes)
        ]
        for start in range(0, len(rows), _SLICE):
            self.connection.execute(sa.insert(CHANGES), rows[start : start + _SLICE])
            self.how.step("publish.progress")
        return True

    def _forget_changes(self, model: str) -> None:
        self.connection.execute(sa.delete(CHANGES).where(CHANGES.c.model == model))


def _drop_retired(connection: Connection) -> None:
    """Drop the tables that no snapshot points to; one that is still read waits for its turn."""
    names: Sequence[str] = connection.execute(sa.select(RETIRED.c.table_name)).scalars().all()
    for name in names:
        try:
            with connection.begin_nested():
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql("set local lock_timeout = '200ms'")
                sa.Table(name, sa.MetaData()).drop(connection, checkfirst=True)
                connection.execute(sa.delete(RETIRED).where(RETIRED.c.table_name == name))
        except sa.exc.OperationalError:
            continue
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("set local lock_timeout = 0")


def prune(connection: Connection, now: datetime, retention: timedelta) -> None:
    """Forget snapshots, with their changes, beyond the newest 200 and older than `retention`."""
    ids = sa.select(PUBLISHED.c.snapshot_id)
    newest = ids.order_by(PUBLISHED.c.snapshot_id.desc()).limit(KEPT_SNAPSHOTS).subquery()
    among_newest = connection.execute(sa.select(sa.func.min(newest.c.snapshot_id))).scalar()
    young = connection.execute(
        sa.select(sa.func.min(PUBLISHED.c.snapshot_id)).where(
            PUBLISHED.c.published_at >= now - retention
        )
    ).scalar()
    bounds = [snapshot_id for snapshot_id in (among_newest, young) if snapshot_id is not None]
    oldest = min(bounds, default=None)
    if oldest is None:
        return
    removal = sa.delete(PUBLISHED).where(PUBLISHED.c.snapshot_id < oldest)
    if not connection.execute(removal).rowcount:
        return
    # Model by model: the key of the changes begins with it, and they may be millions.
    models: Sequence[str] = connection.execute(sa.select(MODELS.c.model)).scalars().all()
    for model in models:
        old = (CHANGES.c.model == model, CHANGES.c.snapshot_id < oldest)
        connection.execute(sa.delete(CHANGES).where(*old))


def _give_back_pages(connection: Connection) -> None:
    """Let a file of SQLite shrink, a part at a time, when most of it is empty.

    One that an earlier version made keeps its size, and fills it again.
    """
    if connection.dialect.name != "sqlite":
        return
    driver: Any = connection.connection.driver_connection
    ((pages,),) = driver.execute("pragma page_count").fetchall()
    ((free,),) = driver.execute("pragma freelist_count").fetchall()
    # sqlite3 takes one step of a statement without rows, and here a step is a page.
    for _ in range(min(_PAGES_GIVEN_BACK, 2 * free - pages)):
        driver.execute("pragma incremental_vacuum(1)")
