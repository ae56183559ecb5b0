"""Decides from files and versions whether a refresh would find anything to do.

Used by `refresh`, which then starts neither Spark nor dbt. A pass that leaves nothing to do keeps a
digest of its inputs. As long as that digest is the same, another pass would find the same. In doubt
there is something to do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError, LivemartError, StateError
from livemart.project.record_logs.options import plain_option
from livemart.project.sources import FILES_KIND
from livemart.run.artifacts.source_freshness import renew_freshness
from livemart.run.input_files import Look, WaitingFiles, project_files, waiting_files
from livemart.run.project_cache.inputs import project_digest
from livemart.run.target_folder import target_folder
from livemart.state.checkpoint import Recorded, open_checkpoint
from livemart.state.last_pass import LastPass, LogAtEnd, keep_pass, kept_pass
from livemart.state.lock import hold_warehouse
from livemart.state.places import StateFolder
from livemart.state.snapshots import Snapshot, SnapshotLog

if TYPE_CHECKING:
    from livemart.land.sources.log_deliveries import LogDeliveries
    from livemart.project.graph import SourceTable
    from livemart.run.runtime import Runtime
    from livemart.settings import Settings


def note_pass(runtime: Runtime, files: WaitingFiles | None, *, is_published: bool) -> None:
    """Keep the inputs that a pass has looked at, unless it has left something to do.

    Args:
        runtime: the process, after the pass; it holds the warehouse.
        files: of its landing folder, before the pass.
        is_published: the serving store holds all that it should.
    """
    settings, newest = runtime.settings, runtime.log.newest()
    if newest is None or newest.status != "published" or settings.as_of or files is None:
        return
    if not all(aside.is_left_out for aside in newest.set_aside.values()):
        return
    # The same question may get another answer.
    if runtime.project.questions or not is_published:
        return
    try:
        logs = _logs_at_end(runtime)
        if logs is not None:
            _note(runtime, newest, files, logs)
    except (OSError, LivemartError) as error:
        # The pass has done its work; the next one does it again.
        structlog.get_logger().debug("pass_not_noted", error=str(error))


def _logs_at_end(runtime: Runtime) -> tuple[LogAtEnd, ...] | None:
    """Return the record logs of the project; None if one holds more, or may not be kept."""
    sources = [
        source
        for source in runtime.project.sources.values()
        if source.stream is not None and source.arrival.kind != FILES_KIND
    ]
    if not sources:
        return ()
    from livemart.land.sources.kinds import open_logs
    from livemart.land.sources.log_looks import log_looks

    opened, looks = open_logs(sources), log_looks(runtime.settings.warehouse)
    readers: dict[LogDeliveries, list[SourceTable]] = {}
    for source in sources:
        log, look = opened[source.relation], looks.get(source.relation)
        if look is None or look.at is None or look.away or look.waiting:
            return None
        if not log.has_plain_options:
            return None
        readers.setdefault(log, []).append(source)
    return tuple(
        LogAtEnd(
            [source.relation for source in sources],
            log.kind,
            {name: plain_option(option) for name, option in sources[0].arrival.options},
            looks[sources[0].relation].ends,
        )
        for log, sources in readers.items()
    )


def _note(
    runtime: Runtime, newest: Snapshot, files: WaitingFiles, logs: tuple[LogAtEnd, ...]
) -> None:
    from livemart.publish.exposures import served_models

    settings = runtime.settings
    if (digest := _digest(settings, runtime.read_at, files)) is None:
        return
    is_served = settings.store_url is not None and bool(served_models(runtime.project)[0])
    moves = settings.clock == "wall" and runtime.project.clock is not None
    last = LastPass(
        newest.epoch,
        newest.snapshot_id,
        digest,
        _tables(runtime, newest),
        newest.as_of if moves else None,
        is_served,
        logs,
    )
    # Other files are an edit that no pass has seen.
    if runtime.is_as_looked_at():
        keep_pass(settings.warehouse, last)


def has_nothing_to_do(
    settings: Settings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> bool:
    """Return True if a refresh would find the same as the newest pass, and note this pass.

    Args:
        settings: of the refresh.
        now: the wall clock, UTC.

    Raises:
        StateError: RUNNER_LIVES, CHECKPOINT_*.
        ConfigError: the project or its profile does not exist.
    """
    if settings.as_of is not None or kept_pass(settings.warehouse) is None:
        return False
    with hold_warehouse(settings.warehouse):
        try:
            return _has_nothing_to_do(settings, now())
        except (StateError, ConfigError):
            raise
        except Exception as error:
            structlog.get_logger().debug("pass_not_compared", error=str(error))
            return False


def _has_nothing_to_do(settings: Settings, now: datetime) -> bool:
    last = kept_pass(settings.warehouse)
    newest = SnapshotLog(settings.warehouse).newest()
    if last is None or newest is None:
        return False
    recorded = Recorded(newest.epoch, newest.batch_id)
    open_checkpoint(StateFolder(settings.warehouse).checkpoint, recorded, new_epoch=False)
    if not _is_same(settings, last, newest, now) or not _end_as_before(settings, last.logs, now):
        return False
    if last.is_served and not _is_confirmed(settings, newest):
        return False
    renew_freshness(target_folder(settings), now)
    keep_pass(settings.warehouse, last)
    return True


def _is_same(settings: Settings, last: LastPass, newest: Snapshot, now: datetime) -> bool:
    if (newest.epoch, newest.snapshot_id) != (last.epoch, last.snapshot_id):
        return False
    if last.until is not None and now >= last.until:
        return False
    files = waiting_files(settings)
    look = project_files(settings).look()
    if files is None or _digest(settings, look, files) != last.digest:
        return False
    warehouse = Warehouse(settings.warehouse)
    return all(_table(warehouse, name) == table for name, table in last.tables.items())


def _end_as_before(settings: Settings, logs: Sequence[LogAtEnd], now: datetime) -> bool:
    """Return True if no record log holds more, and note that it was asked.

    A log that was created again may end at the same numbers: the pass after its next record meets
    it.
    """
    if not logs:
        return True
    from livemart.land.sources.kinds import open_log
    from livemart.land.sources.log_looks import LogLooks

    looks = LogLooks(settings.warehouse, [name for log in logs for name in log.relations])
    for log in logs:
        if open_log(log.kind, log.options).ends() != log.ends:
            return False
        looks.answered(log.relations, now, log.ends, log.ends, None)
    looks.keep()
    return True


def _digest(settings: Settings, look: Look, files: WaitingFiles) -> str | None:
    if (project := project_digest(settings, look)) is None:
        return None
    parts = [project, settings.model_dump(mode="json"), list(files)]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _tables(runtime: Runtime, newest: Snapshot) -> Mapping[str, tuple[str, int] | None]:
    """Return the tables as the newest snapshot names them."""
    warehouse = runtime.warehouse
    tables: dict[str, tuple[str, int] | None] = {}
    for source in runtime.project.sources.values():
        version = newest.sources.get(source.relation)
        current = _table(warehouse, source.relation)
        tables[source.relation] = None
        if current is not None and version is not None:
            alike = warehouse.newest_alike(source.relation, version)
            tables[source.relation] = (current[0], alike)
    for unique_id, state in newest.stored.items():
        if query := runtime.plans.stored.get(unique_id):
            alike = warehouse.newest_alike(query.relation, state.version)
            tables[query.relation] = (state.table_id, alike)
    return tables


def _table(warehouse: Warehouse, relation: str) -> tuple[str, int] | None:
    if not warehouse.exists(relation):
        return None
    return warehouse.table_id(relation), warehouse.version(relation)


def _is_confirmed(settings: Settings, newest: Snapshot) -> bool:
    """Confirm to readers that they see the newest snapshot; False if they do not see it all."""
    from livemart.publish.publisher import confirm, is_whole
    from livemart.store.store import Store

    assert settings.store_url is not None
    with closing(Store.open(settings.store_url)) as store:
        return is_whole(store) and confirm(store, newest, datetime.now(UTC))
