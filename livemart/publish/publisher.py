"""Publishes a snapshot: one transaction takes the store to it, or leaves the store alone.

Used by the publisher's thread. Changed rows of every served model, the changes themselves and the
row that readers look for are written together. The publisher compares the store when the changes
were computed with the store when they are written. So a replay changes nothing and two publishers
never interleave.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import sqlalchemy as sa

from livemart.errors import PublishError
from livemart.intervals import ms_since
from livemart.publish.exposures import ServedSpec
from livemart.publish.transaction import Publishing, Transaction
from livemart.publish.writes import ServedTables, base_of, is_published, plan_writes
from livemart.state.snapshots import Snapshot
from livemart.store.connections import shown_url
from livemart.store.descriptions import write_descriptions
from livemart.store.pages import write_pages
from livemart.store.schema import PUBLISHED
from livemart.store.served import NO_PAGES, ProjectPages
from livemart.store.store import Store, StoreState, count_rows, read_state

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of a publication: rows changed by model, and which models were copied whole.

    `refused`: by model, why the database does not take it; it stays as it was.
    """

    snapshot_id: int
    rows_changed: Mapping[str, int] = field(default_factory=dict)
    rebuilt: tuple[str, ...] = ()
    took_ms: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)


def publish(
    store: Store,
    snapshot: Snapshot,
    served: Sequence[ServedSpec],
    tables: ServedTables,
    how: Publishing | None = None,
    *,
    is_start: bool = False,
    pages: ProjectPages = NO_PAGES,
) -> Publication | None:
    """Bring the store to `snapshot`; return None if it is there already, or further.

    Args:
        store: the serving store; created, also again, where it is not what it should be.
        snapshot: a published row of the snapshot log.
        served: the models to serve; others that the store holds are dropped.
        tables: those of the served models.
        how: tenants, retention, clock.
        is_start: the snapshot is the newest of the log and nothing is known of the store. A store
            that is further belongs to another log, and the rows of its tables are counted.
        pages: how the pages look that show the models.

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
        writes = plan_writes(base, snapshot, served, tables, how.tenant_column)
        names = {spec.name for spec in served if spec.unique_id in snapshot.models}
        descriptions = {
            spec.name: spec.described_in(snapshot) for spec in served if spec.name in names
        }
        if is_published(base, snapshot) and not writes and names == state.models.keys():
            if is_start:
                # They may have been edited since, and a store of an earlier version has none.
                with store.begin() as connection:
                    write_descriptions(connection, descriptions)
                    write_pages(connection, pages)
            return None
        how.step("publish.before")
        with store.begin() as connection:
            if read_state(connection).identity != state.identity:
                continue
            transaction = Transaction(connection, state, snapshot, tables, how)
            transaction.begin(is_wiped=base.published is None)
            rows_changed = {write.spec.name: transaction.write(write) for write in writes}
            transaction.drop(state.models.keys() - names)
            if not store.is_described(state, descriptions):
                write_descriptions(connection, descriptions)
            write_pages(connection, pages)
            published = transaction.finish({spec.unique_id: spec.name for spec in served})
            how.step("publish.in_transaction")
        store.note_described(replace(state, published=published), descriptions)
        how.step("publish.after")
        took_ms = ms_since(started)
        rebuilt = tuple(transaction.rebuilt)
        refused = transaction.refused
        return Publication(snapshot.snapshot_id, rows_changed, rebuilt, took_ms, refused)
    raise PublishError(
        "STORE_CONTENDED",
        f"{shown_url(store.engine)}: another publisher was faster {_ATTEMPTS} times",
        hint="let only one warehouse fill this store",
    )


def confirm(store: Store, snapshot: Snapshot, checked_at: datetime) -> bool:
    """Note that a snapshot is still the newest; return False if the store does not show it.

    Raises:
        PublishError: STORE_UNREACHABLE.
    """
    with store.begin() as connection:
        if not is_published(read_state(connection), snapshot):
            return False
        same = PUBLISHED.c.snapshot_id == snapshot.snapshot_id
        connection.execute(sa.update(PUBLISHED).where(same).values(checked_at=checked_at))
    return True


def is_whole(store: Store) -> bool:
    """Return True if the store holds the rows of every model that it says it holds.

    Raises:
        PublishError: STORE_UNREACHABLE.
    """
    state = _look(store, counts_rows=True)
    return state.table_names >= _tables(state, state.models)


def _look(store: Store, *, counts_rows: bool) -> StoreState:
    """Return the state of the store, without models that lost or gained rows."""
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
