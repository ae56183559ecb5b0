"""Lands delivered records as rows of one Delta table per source, exactly once, in any order.

A micro-batch is landed in steps that a replay repeats without effect. First the manifest says what
is read. Then dead letters, remembered deletes and landed rows are committed, one commit a table,
each skipped if the table carries the batch already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.dataset as pds

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.failpoints import failpoint
from livemart.land.already_landed import landed_offsets, note_landed_files
from livemart.land.commit_note import Landed
from livemart.land.letters.dead_letters import relation_of
from livemart.land.micro_batch import DeliveryReader, Limit, MicroBatch
from livemart.land.records.schema import TIMESTAMP
from livemart.land.sources.delivery import Delivery
from livemart.land.sources.files.bucket import open_landing
from livemart.land.sources.files.delivered import DeliveredFiles, WatchedFiles, files_of
from livemart.land.sources.files.folder import is_hidden, matches
from livemart.land.sources.files.problems import disappeared, unreadable
from livemart.land.sources.files.record_sizes import RecordSizes
from livemart.land.sources.files.stream import (
    Limits,
    Slot,
    files_of_batch,
    find_unplaced,
    folder_of,
    last_committed,
    place_slots,
    start_stream,
)
from livemart.land.sources.kinds import open_logs
from livemart.land.sources.log_deliveries import LogDeliveries, LogPlan, UnreadableLogError
from livemart.land.sources.log_looks import LogLooks
from livemart.land.sources.manifest import Manifest, ManifestStore, Offsets
from livemart.land.sources.record_log import LogProgress, waiting_records
from livemart.land.tables import create_tables
from livemart.land.upsert.deletes import deletes_relation
from livemart.project.graph import SourceTable
from livemart.state.checkpoint import open_checkpoint, read_epoch
from livemart.state.counts import Counts
from livemart.state.drift import Drift
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

# For a source without its own limit: a backlog of days is taken in steps.
_MOST_BYTES = 1 << 30
_MOST_RECORDS = 1_000_000
# Limits that would be off by more are computed again.
_DRIFT = 2.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from livemart.settings import Settings


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """A micro-batch after landing."""

    batch_id: int
    landed_at: datetime
    versions: Mapping[str, int]
    """The version of every landed table, by relation."""
    counts: Mapping[str, Counts]
    """By relation."""
    newest_event_time: datetime | None
    """The newest one among the records that were taken, UTC."""
    has_records: bool
    """True if it held any record."""
    delivered_at: datetime | None = None
    """When the oldest of its files was delivered, UTC; None without files."""
    refusals: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The number of dead letters that this landing made, by reason."""
    drift: Mapping[str, Drift] = field(default_factory=dict)
    """How records differ from the declared columns, by relation, where they do."""


class LandingEnded(Exception):
    """Raised by a micro-batch that begins after the end; it lands nothing, and will be replayed."""


class Landing:
    """Lands the records of a project's sources. One at a time for a warehouse.

    Raises:
        ConfigError: SOURCE_KIND_BROKEN.

    Args:
        spark: the session.
        warehouse: the tables.
        landing_folder: where files are delivered.
        sources: source tables; those without `stream` are left alone.
        settings: its `lane` forces small batches or bulk; None for the defaults.
        now: arrival time of a new micro-batch.
        epoch: prefix of transaction ids until `stream` reads that of its checkpoint.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        landing_folder: StoragePlace,
        sources: Sequence[SourceTable],
        settings: Settings | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        epoch: str = "direct",
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._folder = open_landing(landing_folder)
        self._sources = {source.relation: source for source in sources if source.stream is not None}
        self._files = DeliveredFiles(self._folder)
        self._logs = open_logs(self._sources.values())
        self._readers: Mapping[str, DeliveryReader] = {
            name: self._logs.get(name, self._files) for name in self._sources
        }
        self._looks = LogLooks(warehouse.place, self._logs)
        self._record_sizes = RecordSizes(warehouse.place)
        self._limited: Sequence[tuple[Slot, Limits]] = ()
        self._until: Mapping[str, Offsets] | None = None
        self._limit = Limit.of(settings.lane if settings else "auto")
        self._now = now
        self._epoch = epoch
        self._watched: WatchedFiles | None = None
        self._landed_before: Mapping[str, frozenset[str]] = {}
        self._is_ending = False
        self.failure: BaseException | None = None

    def create_tables(self) -> bool:
        """Create missing tables, all empty: landed tables, remembered deletes, dead letters.

        Returns:
            True if a table that was there before has other columns or types now.

        Raises:
            StateError: LANDED_COLUMN_CHANGED.
        """
        return create_tables(self._warehouse, list(self._sources.values()), self._epoch)

    def stream(
        self,
        checkpoint: StoragePlace,
        body: Callable[[LandedBatch], None],
        *,
        trigger: Literal["available_now"] | timedelta,
        began: Callable[[int, int], None] = lambda batch_id, files: None,
        retyped: Callable[[], None] = lambda: None,
    ) -> StreamingQuery:
        """Start the query that lands each micro-batch and then calls `body` with it.

        An exception of landing or `body` ends the query; `failure` holds it, as only its text comes
        back through the query.

        Args:
            checkpoint: folder of the query's state, made with a new epoch if it is missing.
            body: called once for each micro-batch, and again if the micro-batch is replayed.
            trigger: land what waits and end, or look for files at each interval.
            began: is called with each micro-batch and the number of its files, before they are
            read.
            retyped: is called first if tables have other columns or types than before.
        """
        epoch = read_epoch(checkpoint) or open_checkpoint(checkpoint, None, new_epoch=False)
        self._epoch, self._watched = epoch.id, None
        if self.create_tables():
            retyped()
        paths = {
            name: source.arrival.path
            for name, source in self._sources.items()
            if name not in self._logs
        }
        added = find_unplaced(checkpoint, paths)
        self._landed_before = note_landed_files(
            checkpoint,
            self._folder.root,
            self._warehouse,
            append_only=[name for name in paths if not self._sources[name].row_rules.keys],
            added=added,
            planned=self._planned(checkpoint),
        )
        for name in added:
            # Once: later a folder that is not there may be on a disk that is away.
            folder = folder_of(self._folder.root, paths[name])
            if isinstance(folder, Path):
                folder.mkdir(parents=True, exist_ok=True)
        slots = place_slots(checkpoint, paths)
        self._limited = [(slot, self._limits(slot.relations)) for slot in slots]

        def land(batch_id: int) -> None:
            try:
                if self._is_ending:
                    raise LandingEnded("told to end")
                files = self._read_by_patterns(files_of_batch(checkpoint, batch_id, slots))
                began(batch_id, len({path for paths in files.values() for path in paths}))
                body(self.land_files(batch_id, files))
            except BaseException as error:
                self.failure = error
                raise

        if self._until is None:
            until: dict[str, Offsets] = {}
            for name, log in self._logs.items():
                with self._noting_unreadable([name]):
                    until[name] = log.ends()
            self._until = until
        self._is_ending, self.failure = False, None
        return start_stream(
            self._spark, self._folder.root, checkpoint, self._limited, land, trigger
        )

    def end(self) -> None:
        """Let no further micro-batch of the stream begin: one that does ends the query at once."""
        self._is_ending = True

    def has_other_limits(self) -> bool:
        """Return whether the stream must be started again, as records are not as large as it took.

        Spark reads limits once, when it starts.
        """
        return any(
            limits.is_off(self._limits(slot.relations), _DRIFT) for slot, limits in self._limited
        )

    def land_files(self, batch_id: int, files: Mapping[str, Sequence[StoragePlace]]) -> LandedBatch:
        """Land files as one micro-batch; landing the same batch again changes nothing.

        Args:
            batch_id: higher than that of the batch before, or one that is replayed.
            files: absolute paths by relation.

        Raises:
            SourceError: SOURCE_FILE_CHANGED, SOURCE_FILE_UNREADABLE, SCHEMA_DRIFT.
        """
        try:
            with self._warehouse.only_writer():
                return self._land(batch_id, files)
        except OSError as error:
            if (name := self._folder.name_in(error)) is None:
                raise
            raise (
                disappeared(self._folder, name)
                if isinstance(error, FileNotFoundError)
                else unreadable(name, error)
            ) from error

    def _land(self, batch_id: int, files: Mapping[str, Sequence[StoragePlace]]) -> LandedBatch:
        failpoint("landing.before")
        store = self._manifests()
        watched = self._watched = self._watched or WatchedFiles(self._folder, store.newest_first())
        earlier = store.read(batch_id)
        if earlier is not None and (taken_out := self._taken_out(earlier)):
            # Else a source that comes back would go on behind records that never landed.
            earlier = earlier.without(taken_out)
            store.write(earlier)
        manifest = earlier or self._new_manifest(batch_id, self._relative(files), watched)
        batch = self._micro_batch(manifest, is_replay=earlier is not None)
        if earlier is None and manifest.deliveries:
            store.write(manifest)
        elif earlier is not None:
            with self._noting_unreadable(manifest.relations):
                deliveries = self._check_replay(manifest, batch.waiting())
            if deliveries != list(manifest.deliveries):
                batch = self._micro_batch(replace(manifest, deliveries=deliveries), is_replay=True)
        with self._noting_unreadable(batch.reading):
            landed = batch.land()
        failpoint("landing.after")
        self._learn_sizes(manifest, landed)
        watched.add(manifest)
        times = [note.newest_event_time for note in landed.values() if note.newest_event_time]
        return LandedBatch(
            batch_id=batch_id,
            landed_at=manifest.landed_at,
            versions={name: self._warehouse.version(name) for name in self._sources},
            counts={
                name: landed[name].counts if name in landed else Counts() for name in self._sources
            },
            newest_event_time=max(times, default=None),
            has_records=any(note.counts.produced for note in landed.values()),
            delivered_at=manifest.delivered_at,
            refusals=self._refusals(manifest, landed),
            drift={name: note.drift for name, note in landed.items() if note.drift},
        )

    def _taken_out(self, manifest: Manifest) -> list[str]:
        """Return the source tables that left the project before a micro-batch has landed."""
        tags = Tags(self._epoch, manifest.batch_id)
        return [
            name
            for name in manifest.relations
            if name not in self._sources
            and not (
                self._warehouse.exists(name) and self._warehouse.is_tagged(name, tags.rows(name))
            )
        ]

    def _micro_batch(self, manifest: Manifest, *, is_replay: bool) -> MicroBatch:
        return MicroBatch(
            self._spark,
            self._warehouse,
            self._readers,
            self._sources,
            self._epoch,
            manifest,
            self._limit,
            is_replay=is_replay,
        )

    def _learn_sizes(self, manifest: Manifest, landed: Mapping[str, Landed]) -> None:
        for delivery in manifest.deliveries:
            size = sum(file.size for file in files_of(delivery))
            for name in delivery.relations:
                if size and name in landed:
                    self._record_sizes.add(name, landed[name].counts.produced, size)
        self._record_sizes.keep()

    @contextmanager
    def _noting_unreadable(self, relations: Sequence[str]) -> Iterator[None]:
        """Note for `status` that the log of some source tables cannot be read."""
        try:
            yield
        except UnreadableLogError as error:
            self._looks.missed(relations, self._now().astimezone(UTC), error.message)
            raise

    def _refusals(self, manifest: Manifest, landed: Mapping[str, Landed]) -> dict[str, int]:
        """Count the dead letters of a batch by reason, those of an earlier attempt as well."""
        refusing = {
            self._sources[name].schema for name, it in landed.items() if it.counts.dead_letters
        }
        of_batch = pds.field("batch_id") == manifest.batch_id
        of_batch &= pds.field("landed_at") == pa.scalar(manifest.landed_at, TIMESTAMP)
        counts: Counter[str] = Counter()
        for relation in sorted({relation_of(schema) for schema in refusing}):
            letters = self._warehouse.read(relation, columns=["reason"], filter=of_batch)
            counts.update(letters.column("reason").to_pylist())
        return dict(counts)

    def _manifests(self) -> ManifestStore:
        return ManifestStore(StateFolder(self._warehouse.place).files, self._epoch)

    def _planned(self, checkpoint: StoragePlace) -> Mapping[str, tuple[str, ...]]:
        """Return the files of a micro-batch that was begun and will be replayed, by relation."""
        done = last_committed(checkpoint)
        newest = next(self._manifests().newest_first(), None)
        if newest is None or newest.batch_id <= done:
            return {}
        return {
            name: tuple(file.path for file in files_of(delivery))
            for delivery in newest.deliveries
            if delivery.receipt.get("files")
            for name in delivery.relations
        }

    def _read_by_patterns(
        self, files: Mapping[str, Sequence[StoragePlace]]
    ) -> Mapping[str, Sequence[StoragePlace]]:
        """Leave out files that Spark found by name in a folder that the source does not read."""
        patterns = {name: source.arrival.path for name, source in self._sources.items()}
        return {
            name: [path for path in paths if matches(self._folder.relative(path), patterns[name])]
            for name, paths in files.items()
            if name in patterns
        }

    def _relative(self, files: Mapping[str, Sequence[StoragePlace]]) -> dict[str, tuple[str, ...]]:
        fresh = {
            name: {
                relative for path in paths if not is_hidden(relative := self._folder.relative(path))
            }.difference(self._landed_before.get(name, ()))
            for name, paths in files.items()
            if name in self._sources
        }
        return {name: tuple(sorted(names)) for name, names in fresh.items() if names}

    def _new_manifest(
        self, batch_id: int, files: Mapping[str, tuple[str, ...]], watched: WatchedFiles
    ) -> Manifest:
        """Look at the input of a new micro-batch.

        Raises:
            SourceError: SOURCE_FILE_CHANGED, SOURCE_UNREADABLE.
        """
        keyed = [source for source in self._sources.values() if source.row_rules.keys]
        tables = [*self._sources, *(deletes_relation(source) for source in keyed)]
        landed_at = self._now().astimezone(UTC)
        deliveries = self._files.plan(files)
        if files or isinstance(self._folder.root, Path):
            # In a bucket this lists folders: not at each tick.
            deliveries += watched.changed()
        reached = self._log_progress()
        for (log, after, max_records), names in self._log_readers(reached).items():
            with self._noting_unreadable(names):
                planned = log.plan(names, after, max_records)
            if planned.delivery is not None:
                deliveries.append(planned.delivery)
                now = LogProgress.of(planned.offsets, planned.identities)
                reached |= dict.fromkeys(names, now)
            self._look(log, names, planned, landed_at)
        self._looks.keep()
        versions = {name: self._warehouse.version(name) for name in tables}
        read = {name: end for name, end in reached.items() if end.offsets is not None}
        offsets = {name: dict(delivery.offsets or ()) for name, delivery in read.items()}
        identities = {name: dict(it.identities) for name, it in read.items() if it.identities}
        return Manifest(batch_id, landed_at, versions, deliveries, offsets, identities)

    def _look(
        self, log: LogDeliveries, names: Sequence[str], planned: LogPlan, at: datetime
    ) -> None:
        """Note the content of a log, and the part that this micro-batch leaves waiting."""
        waiting = waiting_records(planned.offsets, planned.ends)
        offsets = {name: planned.offsets.get(name, 0) for name in waiting}
        self._looks.answered(names, at, planned.ends, planned.offsets, log.oldest_at(offsets))

    def _log_readers(
        self, reached: Mapping[str, LogProgress]
    ) -> Mapping[tuple[LogDeliveries, LogProgress, int], list[str]]:
        """Return the relations that read a log from the same offsets on, in the same steps."""
        readers: dict[tuple[LogDeliveries, LogProgress, int], list[str]] = {}
        for name, log in self._logs.items():
            limit = self._sources[name].arrival.max_records_per_trigger or _MOST_RECORDS
            readers.setdefault((log, reached.get(name, LogProgress()), limit), []).append(name)
        return readers

    def _log_progress(self) -> dict[str, LogProgress]:
        """Return how far each source table has read its log.

        One that is not known yet begins with the log; if it has no keys, behind the records that
        its table holds.
        """
        newest = next(self._manifests().newest_first(), None)
        reached = dict[str, LogProgress]()
        if newest is not None:
            for name, offsets in newest.offsets.items():
                reached[name] = LogProgress.of(offsets, newest.identities.get(name, {}))
        for name in self._logs:
            if name not in reached:
                is_append_only = not self._sources[name].row_rules.keys
                landed = landed_offsets(self._warehouse, name) if is_append_only else {}
                reached[name] = LogProgress.of(landed or None, {})
        return reached

    def is_behind(self) -> bool:
        """Return whether a log holds records that waited when the stream was first started."""
        reached = self._log_progress() if self._until else {}
        return any(
            self._logs[name].is_behind(dict(reached[name].offsets or ()), ends)
            for name, ends in (self._until or {}).items()
        )

    def _check_replay(self, manifest: Manifest, waiting: Sequence[str]) -> Sequence[Delivery]:
        """Return the deliveries of a replay; those that have not landed yet must be unchanged."""
        deliveries: list[Delivery] = []
        for delivery in manifest.deliveries:
            names = [name for name in delivery.relations if name in waiting]
            deliveries.append(delivery)
            for name in names[:1]:
                reader = self._readers[name]
                if reader.kind != delivery.kind:
                    raise StateError(
                        "SOURCE_KIND_CHANGED",
                        f"{self._sources[name].file}: {name}: batch {manifest.batch_id} was begun "
                        f"with kind {delivery.kind}, and is not landed yet; the source has kind "
                        f"{reader.kind} now",
                        hint=f"restore `kind: {delivery.kind}` until the batch has landed",
                    )
                deliveries[-1] = reader.check(delivery, manifest.batch_id)
        return deliveries

    def _limits(self, relations: Sequence[str]) -> Limits:
        arrivals = [self._sources[name].arrival for name in relations]
        if records := [it.max_records_per_trigger for it in arrivals if it.max_records_per_trigger]:
            means = [mean for name in relations if (mean := self._record_sizes.mean(name))]
            if not means:
                # The size of a record is unknown until the first file is read.
                return Limits(max_files=1)
            return Limits(max_bytes=max(1, round(min(records) * means[0])))
        if files := [it.max_files_per_trigger for it in arrivals if it.max_files_per_trigger]:
            return Limits(max_files=min(files))
        sizes = [it.max_bytes_per_trigger for it in arrivals if it.max_bytes_per_trigger]
        return Limits(max_bytes=min(sizes, default=_MOST_BYTES))
