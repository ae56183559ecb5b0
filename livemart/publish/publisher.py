"""Publication: one transaction takes the store from one snapshot to another, or leaves it alone.

Changed rows of every served model, the changes themselves and the row that readers look for are
written together. What the store was when the changes were computed is compared with what it is when
they are written, so a replay changes nothing and two publishers never interleave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.errors import PublishError
from livemart.intervals import ms_since
from livemart.publish.retention import prune
from livemart.publish.rows import (
    WEIGHT,
    KeyNotUniqueError,
    RowChange,
    RowsDifferError,
    apply_change,
    fill,
)
from livemart.publish.writes import (
    ModelWrite,
    ReadChange,
    base_of,
    form_of,
    is_published,
    plan_writes,
)
from livemart.state.snapshots import Snapshot
from livemart.store.schema import (
    CHANGES,
    MODELS,
    PUBLISHED,
    RETIRED,
    Layout,
    table_name,
)
from livemart.store.served import Publication, ServedModel, ServedSpec
from livemart.store.store import (
    Store,
    StoredModel,
    StoreState,
    count_rows,
    make_tables,
    read_state,
    shown_url,
)

# Above it readers take all rows anew: a log as long as the table helps nobody.
_LOGGED_ROWS = 100_000
_SLICE = 5_000
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Publishing:
    """How to publish.

    `step` is told the name of each place that is come to: `publish.before`,
    `publish.in_transaction`, `publish.after`, and `publish.progress` in between.
    """

    tenant_column: str = "restaurant_id"
    change_retention: timedelta = timedelta(hours=24)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    step: Callable[[str], None] = lambda _: None


def publish(
    store: Store,
    snapshot: Snapshot,
    served: Sequence[ServedSpec],
    read_change: ReadChange,
    how: Publishing | None = None,
    *,
    is_start: bool = False,
) -> Publication | None:
    """Bring the store to `snapshot`; return None if it is there already, or further.

    Args:
        store: the serving store; made, or made anew, where it is not what it should be.
        snapshot: a published row of the snapshot log.
        served: the models to serve; others that the store holds are dropped.
        read_change: returns the net change of a relation between two versions, or all rows of the
            second one if the first is None: its columns plus `_weight`.
        how: tenants, retention, clock.
        is_start: the snapshot is the newest of the log and nothing is known of the store: one that
            is further belongs to another log, and the rows of its tables are counted.

    Raises:
        PublishError: STORE_UNREACHABLE, STORE_CONTENDED.
        RefreshError: a table of the warehouse cannot be read.
    """
    how = how or Publishing()
    started = time.perf_counter()
    for _ in range(_ATTEMPTS):
        state = _look(store, counts_rows=is_start)
        base = base_of(state, snapshot, is_start=is_start)
        if base is None:
            return None
        writes = plan_writes(base, snapshot, served, read_change, how.tenant_column)
        names = {spec.name for spec in served if spec.unique_id in snapshot.models}
        if is_published(base, snapshot) and not writes and names == state.models.keys():
            return None
        how.step("publish.before")
        with store.begin() as connection:
            if read_state(connection).identity != state.identity:
                continue
            transaction = _Transaction(connection, state, snapshot, read_change, how)
            transaction.begin(is_wiped=base.published is None)
            rows_changed = {write.spec.name: transaction.write(write) for write in writes}
            transaction.drop(state.models.keys() - names)
            transaction.finish()
            how.step("publish.in_transaction")
        how.step("publish.after")
        took_ms = ms_since(started)
        rebuilt = tuple(transaction.rebuilt)
        return Publication(snapshot.snapshot_id, rows_changed, rebuilt, took_ms)
    raise PublishError(
        "STORE_CONTENDED",
        f"{shown_url(store.engine)}: another publisher came before {_ATTEMPTS} times",
        hint="let one warehouse alone fill this store",
    )


def _look(store: Store, *, counts_rows: bool) -> StoreState:
    """Return what the store holds, leaving out models that lost or gained rows."""
    with store.begin() as connection:
        state = read_state(connection)
        if not counts_rows:
            return state
        damaged = {
            name
            for name, stored in state.models.items()
            if stored.layout.table_name in state.table_names
            and count_rows(connection, stored) != stored.row_count
        }
        return replace(state, table_names=state.table_names - _tables(state, damaged))


def _tables(state: StoreState, models: Iterable[str]) -> set[str]:
    return {state.models[name].layout.table_name for name in models}


class _Transaction:
    """The writes of one publication."""

    def __init__(
        self,
        connection: Connection,
        state: StoreState,
        snapshot: Snapshot,
        read_change: ReadChange,
        how: Publishing,
    ) -> None:
        self._connection = connection
        self._state = state
        self._snapshot = snapshot
        self._read_change = read_change
        self._how = how
        self.rebuilt: list[str] = []

    def begin(self, *, is_wiped: bool) -> None:
        """Make the tables ready; drop what the publication before this one retired."""
        if self._state.store_id is None:
            make_tables(self._connection)
            return
        _drop_retired(self._connection)
        if is_wiped:
            self.drop(self._state.models)
            for table in (PUBLISHED, CHANGES, MODELS):
                self._connection.execute(sa.delete(table))

    def write(self, write: ModelWrite) -> int:
        """Write a model's rows and changes; return how many rows changed."""
        if write.change is not None and write.stored is not None:
            try:
                with self._connection.begin_nested():
                    found = apply_change(self._connection, write.stored.layout, write.change)
            except (RowsDifferError, KeyNotUniqueError):
                pass
            else:
                weights = pc.sum(write.change.column(WEIGHT)).as_py() or 0
                row_count = write.stored.row_count + weights
                is_logged = self._log(write.spec.name, found)
                copied_at = write.stored.copied_at if is_logged else self._snapshot.snapshot_id
                self._keep(write, write.stored.layout, row_count, copied_at)
                return len(found)
        return self._rebuild(write)

    def drop(self, names: Iterable[str]) -> None:
        """Stop serving models."""
        for name in names:
            self._retire(name)
            self._connection.execute(sa.delete(MODELS).where(MODELS.c.model == name))
            self._forget_changes(name)

    def finish(self) -> None:
        """Point readers to the snapshot, and forget what is too old."""
        snapshot, now = self._snapshot, self._how.now()
        same = PUBLISHED.c.snapshot_id == snapshot.snapshot_id
        self._connection.execute(sa.delete(PUBLISHED).where(same))
        self._connection.execute(
            sa.insert(PUBLISHED).values(
                snapshot_id=snapshot.snapshot_id,
                as_of=snapshot.as_of,
                published_at=now,
                epoch=snapshot.epoch,
                checked_at=now,
            )
        )
        prune(self._connection, now, self._how.change_retention)

    def _rebuild(self, write: ModelWrite) -> int:
        """Copy a model whole, into a table of its own; those who follow its changes start anew."""
        name = write.spec.name
        rows = write.rows
        if rows is None:
            rows = self._read_change(write.spec.relation, None, write.state.version)
        model = form_of(write.spec, rows, self._how.tenant_column)
        # Before a name is chosen: the old one may be free because somebody dropped the table.
        self._retire(name)
        layout = Layout(self._new_table_name(name), model)
        try:
            with self._connection.begin_nested():
                count = self._fill(layout, rows)
        except KeyNotUniqueError:
            layout = Layout(layout.table_name, replace(model, row_key=()))
            count = self._fill(layout, rows)
        self._keep(write, layout, count, self._snapshot.snapshot_id)
        self._forget_changes(name)
        self.rebuilt.append(name)
        return count

    def _fill(self, layout: Layout, rows: pa.Table) -> int:
        return fill(self._connection, layout, rows, lambda: self._how.step("publish.progress"))

    def _new_table_name(self, model: str) -> str:
        taken = set(sa.inspect(self._connection).get_table_names())
        query = sa.select(RETIRED.c.table_name)
        retired: Sequence[str] = self._connection.execute(query).scalars().all()
        return table_name(model, taken.union(retired))

    def _retire(self, model: str) -> None:
        """Leave a model's table to readers of the snapshot before, until the next publication."""
        stored = self._state.models.get(model)
        if stored is None:
            return
        name = stored.layout.table_name
        known = sa.select(RETIRED).where(RETIRED.c.table_name == name)
        if self._connection.execute(known).first() is None:
            self._connection.execute(sa.insert(RETIRED).values(table_name=name))

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
        self._connection.execute(sa.delete(MODELS).where(MODELS.c.model == model.name))
        self._connection.execute(sa.insert(MODELS).values(row.to_row()))

    def _log(self, model: str, found: Sequence[RowChange]) -> bool:
        """Keep changes for those who follow the model; return False if they are too many."""
        if len(found) > _LOGGED_ROWS:
            self._forget_changes(model)
            return False
        at = {"model": model, "snapshot_id": self._snapshot.snapshot_id}
        rows = [
            {**at, "position": position, "tenant": each.tenant, "op": each.op, "row": each.row}
            for position, each in enumerate(found)
        ]
        for start in range(0, len(rows), _SLICE):
            self._connection.execute(sa.insert(CHANGES), rows[start : start + _SLICE])
            self._how.step("publish.progress")
        return True

    def _forget_changes(self, model: str) -> None:
        self._connection.execute(sa.delete(CHANGES).where(CHANGES.c.model == model))


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
