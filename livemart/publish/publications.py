"""Hands each snapshot of a run over to the publisher's thread.

Used by the pipeline. It finds the served models, reads their net changes from the warehouse, and
opens nothing if there is no model to serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from livemart.arrow.bags import WEIGHT
from livemart.arrow.variants import nothing_of
from livemart.delta.changes import changes_unavailable
from livemart.delta.warehouse import Warehouse
from livemart.extras import install_hint
from livemart.failpoints import failpoint
from livemart.project.graph import Project
from livemart.publish.exposures import project_pages, served_models
from livemart.settings import Settings
from livemart.state.snapshots import Snapshot, SnapshotLog

if TYPE_CHECKING:
    from livemart.publish.publisher import Publication
    from livemart.publish.thread import PublisherThread
    from livemart.store.store import Store


# So many rows of a model are in memory while it is copied whole.
_ROWS_AT_ONCE = 50_000


@dataclass(eq=False)
class Publications:
    """Copies served models into the serving store while this context is open.

    Nothing is opened if no exposure names a model, or if the setting `store` is `none`.

    Args:
        project: its exposures name the models to serve.
        warehouse: the models' tables.
        log: the snapshots.
        settings: store, tenants, retention, and how long its end may take.
        abandon: set when the end is no longer to be waited for.
        copying: is open, in any thread, while the snapshot that it is given is copied.
    """

    project: Project
    warehouse: Warehouse
    log: SnapshotLog
    settings: Settings
    abandon: Event
    copying: Callable[[int], AbstractContextManager[object]] = nullcontext
    is_complete: bool = field(default=True, init=False)
    """Once it is closed: whether the store has taken all that it is to hold."""
    _store: Store | None = field(default=None, init=False)
    _thread: PublisherThread | None = field(default=None, init=False)

    def __enter__(self) -> Publications:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is None or self._store is None:
            return
        is_done = self._thread.close(self.settings.stop_timeout, self.abandon)
        self.is_complete = is_done and not self._thread.refused
        self._thread = None
        self._store.close()

    def offer(self, snapshot: Snapshot | None) -> None:
        """Publish this snapshot as soon as may be, unless it is held; return at once.

        None: the pass found nothing new. Readers are notified that their snapshot is still the
        newest, unless the newest is held, and they see one before it.
        """
        if self._thread is None:
            return
        if snapshot is None:
            newest = self.log.newest()
            if newest is not None and newest.status == "published":
                self._thread.confirm(newest, datetime.now(UTC))
        elif snapshot.status == "published":
            self._thread.offer(snapshot)

    def _open(self) -> None:
        settings, url = self.settings, self.settings.store_url
        served, unstored = served_models(self.project)
        if url is None or not served:
            if served and settings.store is None:
                structlog.get_logger().warning(
                    "nothing_served", models=len(served), next=install_hint("serve")
                )
            return
        # Not before it is needed: SQLAlchemy takes a while to load.
        from livemart.publish.publisher import confirm, publish
        from livemart.publish.thread import PublisherThread
        from livemart.publish.transaction import Publishing
        from livemart.store.store import Store

        for unique_id in unstored:
            reason = "it is no table: give it another materialization"
            if self.project.models[unique_id].is_custom:
                reason = "it had no table when the command began: run it again after a build"
            structlog.get_logger().warning("model_not_served", model=unique_id, reason=reason)
        store = self._store = Store.open(url)
        pages = project_pages(self.project, served)

        def step(name: str) -> None:
            thread.progress()
            failpoint(name)

        def bring(snapshot: Snapshot, is_start: bool) -> Publication | None:
            with self.copying(snapshot.snapshot_id):
                return publish(store, snapshot, served, tables, how, is_start=is_start, pages=pages)

        tables = WarehouseTables(self.warehouse)
        how = Publishing(
            tenant_column=settings.tenant_column,
            change_retention=settings.kept_changes,
            step=step,
        )
        thread = self._thread = PublisherThread(bring, partial(confirm, store))
        thread.start(self.log.newest_published())


@dataclass(frozen=True, slots=True)
class WarehouseTables:
    """The tables of a warehouse, as `ServedTables`."""

    warehouse: Warehouse

    def change(self, relation: str, from_version: int, to_version: int) -> pa.Table:
        change = self.warehouse.changes(relation, from_version, to_version)
        if self.warehouse.has_other_columns(relation, from_version, to_version):
            # In the types of now, a row whose parts were retyped may be the one that it was.
            raise changes_unavailable(relation, to_version, "its columns were others before")
        return change

    def rows(self, relation: str, version: int) -> Iterator[pa.Table]:
        schema = self.warehouse.arrow_schema(relation, version)
        slices = self.warehouse.files(relation, version).batches(schema.names, None, _ROWS_AT_ONCE)
        for rows in chain([nothing_of(schema)], slices):
            ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
            yield rows.append_column(pa.field(WEIGHT, pa.int64(), nullable=False), ones)
