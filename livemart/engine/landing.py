"""Landing: what arrived becomes rows of one Delta table per source, exactly once, whatever its order.

A micro-batch is landed in steps that a replay repeats without effect: the manifest says what is read;
dead letters, remembered deletes and landed rows are then committed in this order, one commit a table,
each skipped if the table carries the batch already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from livemart.engine import dead_letters
from livemart.engine.conditions import holds
from livemart.engine.epoch import open_checkpoint, read_epoch
from livemart.engine.failpoints import failpoint
from livemart.engine.landed_tables import create_tables, record_schema
from livemart.engine.records.parse import parse_file
from livemart.engine.records.reader import Group, Rules
from livemart.engine.sources.file_stream import Limits, files_of_batch, place_slots, start_stream
from livemart.engine.sources.files import FileIdentity, LandingFolder
from livemart.engine.sources.manifest import Manifest, ManifestStore
from livemart.engine.tables import Tag, Warehouse
from livemart.engine.upsert import Counts, SourceChange, Stamp, change_of, deletes_relation
from livemart.errors import SourceError
from livemart.project.graph import SourceTable, StreamSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from livemart.settings import Settings

__all__ = ["Counts", "LandedBatch", "Landing"]

_GENERATION = 0
_NOTHING = Counts(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """A micro-batch after landing.

    `versions`: of every landed table, by relation. `counts`: by relation. `newest_event_time`: over
    the rows that this batch wrote, UTC. `has_records`: whether it held any record.
    """

    batch_id: int
    landed_at: datetime
    versions: Mapping[str, int]
    counts: Mapping[str, Counts]
    newest_event_time: datetime | None
    has_records: bool


@dataclass(frozen=True, slots=True)
class _Landed:
    """What a batch came to for one source; kept in its commit, so that a replay can tell it again."""

    counts: Counts
    newest_event_time: datetime | None


class Landing:
    """Lands the files of a project's sources. One at a time for a warehouse.

    Args:
        spark: the session.
        warehouse: the tables.
        landing_folder: where files are delivered.
        sources: source tables; those without `stream` are left alone.
        settings: `lane` and thresholds; None for the defaults.
        now: arrival time of a new micro-batch.
        epoch: prefix of transaction ids until `stream` reads that of its checkpoint.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        landing_folder: Path,
        sources: Sequence[SourceTable],
        settings: Settings | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        epoch: str = "direct",
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._folder = LandingFolder(landing_folder)
        self._sources = {source.relation: source for source in sources if source.stream is not None}
        self._settings = settings
        self._now = now
        self._epoch = epoch
        self.failure: BaseException | None = None

    def create_tables(self) -> None:
        """Create what is missing: landed tables, remembered deletes, dead letters; all empty."""
        create_tables(self._warehouse, list(self._sources.values()))

    def stream(
        self,
        checkpoint: Path,
        body: Callable[[LandedBatch], None],
        *,
        trigger: Literal["available_now"] | timedelta,
    ) -> StreamingQuery:
        """Start the query that lands each micro-batch and then calls `body` with it.

        An exception of landing or `body` ends the query; `failure` holds it, as only its text comes
        back through the query.

        Args:
            checkpoint: folder of the query's state, made with a new epoch if it is missing.
            body: called once for each micro-batch, and again if the micro-batch is replayed.
            trigger: land what waits and end, or look for files at each interval.
        """
        self.create_tables()
        epoch = read_epoch(checkpoint) or open_checkpoint(checkpoint, None, new_epoch=False)
        self._epoch = epoch.id
        wanted = {name: _spec(source).path for name, source in self._sources.items()}
        slots = place_slots(checkpoint, wanted)
        limited = [(slot, self._limits(slot.relations)) for slot in slots]

        def land(batch_id: int) -> None:
            try:
                body(self.land_files(batch_id, files_of_batch(checkpoint, batch_id, slots)))
            except BaseException as error:
                self.failure = error
                raise

        self.failure = None
        return start_stream(self._spark, self._folder.root, checkpoint, limited, land, trigger)

    def land_files(
        self, batch_id: int, files: Mapping[str, Sequence[Path]] | None = None
    ) -> LandedBatch:
        """Land files as one micro-batch; landing the same batch again changes nothing.

        Args:
            batch_id: higher than that of the batch before, or one that is replayed.
            files: absolute paths by relation; all that the sources' patterns find if None.

        Raises:
            SourceError: SOURCE_FILE_CHANGED, SCHEMA_DRIFT.
        """
        failpoint("landing.before")
        if files is None:
            found = {name: self._folder.find(_spec(s).path) for name, s in self._sources.items()}
            files = {name: paths for name, paths in found.items() if paths}
        manifest = self._manifest(batch_id, files)
        stamp = Stamp(batch_id, manifest.landed_at)
        finished = {
            name: known for name in manifest.relations if (known := self._finished(name, manifest))
        }
        changes = self._changes(manifest, stamp, skip=finished.keys())
        self._commit_letters(stamp, changes)
        self._commit_deletes(stamp, changes)
        failpoint("landing.after_deletes")
        landed = {
            name: _Landed(each.counts, each.newest_event_time) for name, each in changes.items()
        }
        for number, (name, change) in enumerate(sorted(changes.items()), 1):
            tag = self._tag(name, stamp, landed[name])
            keys = _spec(self._sources[name]).keys
            self._warehouse.commit(name, change.landed, tag, key=keys)
            failpoint(f"landing.after_table.{number}")
        landed |= finished
        failpoint("landing.after")
        times = [each.newest_event_time for each in landed.values() if each.newest_event_time]
        return LandedBatch(
            batch_id=batch_id,
            landed_at=manifest.landed_at,
            versions={name: self._warehouse.version(name) for name in self._sources},
            counts={
                name: landed[name].counts if name in landed else _NOTHING for name in self._sources
            },
            newest_event_time=max(times, default=None),
            has_records=any(each.counts.produced for each in landed.values()),
        )

    def _manifest(self, batch_id: int, files: Mapping[str, Sequence[Path]]) -> Manifest:
        """Return what this batch reads: written down now, or checked against what was."""
        store = ManifestStore(self._warehouse.root / "_livemart" / "files", self._epoch)
        relations = {
            name: tuple(
                self._folder.relative(path)
                for path in sorted(paths)
                if not self._folder.is_hidden(path)
            )
            for name, paths in files.items()
            if name in self._sources
        }
        known = store.read(batch_id)
        if known is not None:
            self._refuse_changed_files(known)
            return known
        names = sorted({path for paths in relations.values() for path in paths})
        manifest = Manifest(
            batch_id,
            self._now().astimezone(UTC),
            {name: self._warehouse.version(name) for name in self._tables()},
            relations,
            {name: self._identify(name) for name in names},
        )
        store.write(manifest)
        return manifest

    def _identify(self, name: str) -> FileIdentity | None:
        path = self._folder.locate(name)
        if path is None:
            return FileIdentity(name, 0, 0, "")
        identity = self._folder.identify(path)
        if identity is None:
            raise _gone(name)
        return identity

    def _refuse_changed_files(self, manifest: Manifest) -> None:
        """A file that is still to be landed must be what it was."""
        waiting = [name for name in manifest.relations if self._finished(name, manifest) is None]
        for name in sorted({path for relation in waiting for path in manifest.relations[relation]}):
            before, path = manifest.files[name], self._folder.locate(name)
            if path is None or before is None:
                continue
            now = self._folder.identify(path)
            if now is None:
                raise _gone(name)
            if now.size and not now.is_same_content(before):
                raise SourceError(
                    "SOURCE_FILE_CHANGED",
                    f"{name}: had {before.size} bytes when batch {manifest.batch_id} was begun, has "
                    f"{now.size} now, and is not landed yet",
                    hint="put the first content back; to give its records up, make the file empty, "
                    "and deliver what is new under another name",
                )

    def _changes(
        self, manifest: Manifest, stamp: Stamp, *, skip: Iterable[str]
    ) -> dict[str, SourceChange]:
        skipped = set(skip)
        groups: dict[tuple[object, ...], list[str]] = {}
        for name, paths in manifest.relations.items():
            if name not in skipped:
                spec, source = _spec(self._sources[name]), self._sources[name]
                schema = record_schema(self._warehouse, source)
                groups.setdefault((spec.format, schema, paths), []).append(name)
        changes: dict[str, SourceChange] = {}
        for names in groups.values():
            changes |= self._group_changes(names, manifest, stamp)
        return changes

    def _group_changes(
        self, names: Sequence[str], manifest: Manifest, stamp: Stamp
    ) -> dict[str, SourceChange]:
        sources = [self._sources[name] for name in names]
        group = Group(
            _spec(sources[0]).format,
            record_schema(self._warehouse, sources[0]),
            tuple(_rules(source) for source in sources),
            stamp.landed_at,
        )
        judged, problems = self._read(group, manifest, manifest.relations[names[0]])
        changes = {}
        for position, source in enumerate(sources):
            spec = _spec(source)
            _refuse_drift(source, judged, position)
            change = change_of(
                source,
                judged,
                position,
                stamp,
                self._warehouse,
                lambda name: manifest.versions[name],
                lambda rows, spec=spec: holds(spec.apply_as_deletes, rows, self._spark),
            )
            changes[source.relation] = _with_files(change, source, problems, stamp)
        return changes

    def _read(
        self, group: Group, manifest: Manifest, names: Sequence[str]
    ) -> tuple[pa.Table, list[tuple[str, str, str]]]:
        """Return the judged records of some files, and what is wrong with whole files."""
        tables = [group.judged.empty_table()]
        problems: list[tuple[str, str, str]] = []
        for name in names:
            path, before = self._folder.locate(name), manifest.files[name]
            if path is None:
                detail = "its path or a link in it leads out of the landing folder: not read"
                problems.append((name, "MALFORMED_RECORD", detail))
                continue
            if before is not None and before.size and not path.stat().st_size:
                detail = f"had {before.size} bytes, is empty now: its records were given up"
                problems.append((name, "SOURCE_FILE_CHANGED", detail))
            tables.extend(parse_file(group, path, name))
        return pa.concat_tables(tables).combine_chunks(), problems

    def _commit_letters(self, stamp: Stamp, changes: Mapping[str, SourceChange]) -> None:
        by_schema: dict[str, list[pa.Table]] = {}
        for name, change in sorted(changes.items()):
            if change.letters.num_rows:
                relation = dead_letters.relation_of(name.split(".", 1)[0])
                by_schema.setdefault(relation, []).append(change.letters)
        for relation, letters in by_schema.items():
            self._warehouse.commit(
                relation, dead_letters.to_diff(letters), self._tag(relation, stamp)
            )

    def _commit_deletes(self, stamp: Stamp, changes: Mapping[str, SourceChange]) -> None:
        for name, change in sorted(changes.items()):
            if change.deletes is not None and change.deletes.num_rows:
                source = self._sources[name]
                relation = deletes_relation(source)
                self._warehouse.commit(
                    relation, change.deletes, self._tag(relation, stamp), key=_spec(source).keys
                )

    def _finished(self, name: str, manifest: Manifest) -> _Landed | None:
        """Return what a batch came to for a source that has committed it, None if it has not."""
        stamp = Stamp(manifest.batch_id, manifest.landed_at)
        if name not in self._sources or not self._warehouse.is_tagged(name, self._tag(name, stamp)):
            return None
        before = manifest.versions.get(name, -1)
        for version in range(self._warehouse.version(name), before, -1):
            found = self._warehouse.metadata_of(name, version)
            if found.get("batch_id") == str(manifest.batch_id) and "counts" in found:
                newest = found.get("newest_event_time")
                return _Landed(
                    Counts(**json.loads(found["counts"])),
                    datetime.fromisoformat(newest) if newest else None,
                )
        return _Landed(_NOTHING, None)

    def _tag(self, relation: str, stamp: Stamp, landed: _Landed | None = None) -> Tag:
        metadata = {"batch_id": str(stamp.batch_id), "relation": relation}
        if landed is not None:
            metadata["counts"] = json.dumps(asdict(landed.counts))
            if landed.newest_event_time is not None:
                metadata["newest_event_time"] = landed.newest_event_time.isoformat()
        return Tag(f"{self._epoch}/{relation}/{_GENERATION}", stamp.batch_id, metadata)

    def _tables(self) -> list[str]:
        keyed = [source for source in self._sources.values() if _spec(source).keys]
        return [*self._sources, *(deletes_relation(source) for source in keyed)]

    def _limits(self, relations: Sequence[str]) -> Limits:
        specs = [_spec(self._sources[name]) for name in relations]
        files = [spec.max_files_per_trigger for spec in specs if spec.max_files_per_trigger]
        sizes = [spec.max_bytes_per_trigger for spec in specs if spec.max_bytes_per_trigger]
        if files:
            return Limits(max_files=min(files))
        return Limits(max_bytes=min(sizes, default=None))


def _with_files(
    change: SourceChange,
    source: SourceTable,
    problems: Sequence[tuple[str, str, str]],
    stamp: Stamp,
) -> SourceChange:
    """Add the dead letters that stand for whole files."""
    if not problems:
        return change
    letters = [
        dead_letters.of_file(source.relation, name, code, detail, stamp.batch_id, stamp.landed_at)
        for name, code, detail in problems
    ]
    counts, more = change.counts, len(letters)
    return SourceChange(
        change.landed,
        change.deletes,
        pa.concat_tables([change.letters, *letters]),
        Counts(
            counts.produced + more, counts.landed, counts.superseded, counts.dead_letters + more
        ),
        change.newest_event_time,
    )


def _rules(source: SourceTable) -> Rules:
    spec = _spec(source)
    return Rules(
        keys=spec.keys,
        sequence_by=spec.sequence_by,
        event_time=source.event_time,
        max_future=spec.max_future,
        max_age=spec.max_age,
        refuses_drift=spec.schema_drift == "fail",
    )


def _gone(name: str) -> SourceError:
    return SourceError(
        "SOURCE_FILE_CHANGED",
        f"{name}: was delivered, is gone now, and is not landed yet",
        hint="put the file back; to give its records up, put an empty file in its place",
    )


def _refuse_drift(source: SourceTable, judged: pa.Table, position: int) -> None:
    import pyarrow.compute as pc

    from livemart.engine.records.reader import verdict
    from livemart.engine.records.schema import ORIGIN, RESCUED

    if _spec(source).schema_drift != "fail":
        return
    drifted = judged.filter(
        pc.fill_null(pc.equal(judged.column(verdict("code", position)), "SCHEMA_DRIFT"), False)
    )
    if drifted.num_rows:
        first = drifted.slice(0, 1).to_pylist()[0]
        fields = ", ".join(name for name, _ in first[RESCUED])
        raise SourceError(
            "SCHEMA_DRIFT",
            f"{source.relation}: {first[ORIGIN]}: found fields {fields}",
            hint="declare them under `columns`, or set schema_drift to rescue or evolve",
        )


def _spec(source: SourceTable) -> StreamSpec:
    assert source.stream is not None, source.unique_id
    return source.stream
