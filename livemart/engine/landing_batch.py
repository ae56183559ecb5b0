"""One micro-batch on its way into the tables: read, judge, decide, commit; small or in bulk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from livemart.engine import dead_letters
from livemart.engine.bulk import BulkLanding, Taken, plain_table, stage
from livemart.engine.conditions import holds
from livemart.engine.drift import adopt, drift_error, new_columns, refuse_drift, rescued_fields
from livemart.engine.failpoints import failpoint
from livemart.engine.landed_tables import columns_tag, record_schema
from livemart.engine.large_lane import LargeLane
from livemart.engine.records.parse import parse_file
from livemart.engine.records.reader import Group, Rules
from livemart.engine.records.schema import LANDING_NAMES, ORIGIN, RESCUED
from livemart.engine.sources.files import LandingFolder
from livemart.engine.sources.manifest import Manifest
from livemart.engine.tables import Tag, Warehouse
from livemart.engine.upsert import Counts, SourceChange, Stamp, change_of, deletes_relation
from livemart.project.graph import SourceTable, StreamSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GENERATION = 0
# Gzip files of records are about this much larger than they look.
_GZIP_FACTOR = 8
# More dead letters than this are written by Spark.
_MAX_LETTERS = 100_000
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """Files of a group of sources beyond `max_bytes` are landed by Spark."""

    max_bytes: float = 64 << 20

    @classmethod
    def of(cls, lane: str) -> Limit:
        """Return the limit that the setting `lane` stands for."""
        return {"small": cls(float("inf")), "large": cls(-1)}.get(lane, cls())


@dataclass(frozen=True, slots=True)
class Landed:
    """What a batch came to for one source; its commit keeps it for a replay."""

    counts: Counts
    newest_event_time: datetime | None


@dataclass(frozen=True, slots=True)
class _FileProblem:
    """What is wrong with a whole file: one dead letter for each source that reads it."""

    name: str
    code: str
    detail: str


@dataclass(slots=True)
class _BulkChange:
    """A source of a group that Spark has staged."""

    landing: BulkLanding
    taken: Taken
    deletes: pa.Table | None


class MicroBatch:
    """The records that a manifest names, landed at most once in each table."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        folder: LandingFolder,
        sources: Mapping[str, SourceTable],
        epoch: str,
        manifest: Manifest,
        limit: Limit,
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._folder = folder
        self._sources = sources
        self._epoch = epoch
        self._manifest = manifest
        self._limit = limit
        self._stamp = Stamp(manifest.batch_id, manifest.landed_at)
        self._staging = warehouse.root / "_livemart" / "staging"
        self._small: dict[str, SourceChange] = {}
        self._bulk: dict[str, _BulkChange] = {}

    def waiting(self) -> list[str]:
        """Return the relations that are still to be landed."""
        return [
            name
            for name in self._manifest.relations
            if name in self._sources and not self._is_committed(name)
        ]

    def land(self) -> dict[str, Landed]:
        """Land what is waiting and return what the batch came to, by relation."""
        waiting = self.waiting()
        finished = {
            name: self._finished(name)
            for name in self._manifest.relations
            if name in self._sources and name not in waiting
        }
        try:
            for names in self._groups(waiting):
                self._decide(names)
            self._note_changed_files()
            self._commit_letters()
            self._commit_deletes()
            failpoint("landing.after_deletes")
            landed = finished
            for number, name in enumerate(sorted({*self._small, *self._bulk}), 1):
                landed[name] = self._commit(name)
                failpoint(f"landing.after_table.{number}")
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)
        return landed

    def _groups(self, waiting: Sequence[str]) -> list[list[str]]:
        """Return the relations that read the same files into the same columns."""
        groups: dict[tuple[object, ...], list[str]] = {}
        for name in waiting:
            source = self._sources[name]
            schema = record_schema(self._warehouse, source)
            files = self._manifest.relations[name]
            groups.setdefault((stream_spec(source).format, schema, files), []).append(name)
        return list(groups.values())

    def _decide(self, names: Sequence[str]) -> None:
        """Read a group's files and work out what changes; nothing is committed yet."""
        sources = [self._sources[name] for name in names]
        group = Group(
            stream_spec(sources[0]).format,
            record_schema(self._warehouse, sources[0]),
            tuple(_rules(source) for source in sources),
            self._stamp.landed_at,
        )
        files, problems = self._files(self._manifest.relations[names[0]])
        size = sum(
            self._manifest.files[name].size * (_GZIP_FACTOR if name.endswith(".gz") else 1)
            for name, _ in files
        )
        if files and size > self._limit.max_bytes:
            staged = stage(self._spark, self._staging / names[0], group, files)
            for position, source in enumerate(sources):
                self._decide_bulk(source, staged, position)
        else:
            tables = [table for name, path in files for table in parse_file(group, path, name)]
            judged = pa.concat_tables([group.judged.empty_table(), *tables]).combine_chunks()
            for position, source in enumerate(sources):
                self._decide_small(source, judged, position)
        for source in sources:
            self._add_problems(source, problems)

    def _decide_small(self, source: SourceTable, judged: pa.Table, position: int) -> None:
        spec = stream_spec(source)
        if spec.schema_drift == "fail":
            refuse_drift(source, judged, position)
        if spec.schema_drift == "evolve":
            self._evolve(source, rescued_fields(judged))
            stored = self._warehouse.arrow_schema(source.relation).names
            judged = adopt(judged, [name for name in stored if _is_new(name, judged)])

        def is_delete(rows: pa.Table) -> np.ndarray:
            return holds(spec.apply_as_deletes, rows, self._spark)

        self._small[source.relation] = change_of(
            source,
            judged,
            position,
            self._stamp,
            self._warehouse,
            lambda name: self._manifest.versions[name],
            is_delete,
        )

    def _decide_bulk(self, source: SourceTable, staged: DataFrame, position: int) -> None:
        spec = stream_spec(source)
        if spec.schema_drift != "rescue":
            fields = f"select distinct explode(map_keys({RESCUED})) as field from {{staged}}"
            names = [row.field for row in self._spark.sql(fields, staged=staged).collect()]
            if names and spec.schema_drift == "fail":
                first = staged.where(f"{RESCUED} is not null").select(ORIGIN, RESCUED).first()
                assert first is not None
                raise drift_error(source, first[ORIGIN], sorted(first[RESCUED]))
            self._evolve(source, names)
        landing = BulkLanding(
            self._spark,
            self._warehouse,
            staged,
            source,
            position,
            self._stamp,
            self._manifest.versions,
        )
        taken = landing.take()
        deletes = landing.deletes() if taken.deletes else None
        self._bulk[source.relation] = _BulkChange(landing, taken, deletes)

    def _evolve(self, source: SourceTable, fields: Sequence[str]) -> None:
        relation = source.relation
        added = new_columns(fields, self._warehouse.arrow_schema(relation).names)
        if added:
            tag = columns_tag(self._epoch, relation, self._stamp.batch_id)
            columns = [pa.field(name, pa.string()) for name in added]
            self._warehouse.add_columns(relation, columns, tag)

    def _files(self, names: Sequence[str]) -> tuple[list[tuple[str, Path]], list[_FileProblem]]:
        """Return the files that can be read, and what is wrong with files as a whole."""
        files: list[tuple[str, Path]] = []
        problems: list[_FileProblem] = []
        for name in names:
            path, before = self._folder.locate(name), self._manifest.files[name]
            if path is None:
                detail = "its path, or a link in it, leads out of the landing folder: not read"
                problems.append(_FileProblem(name, "MALFORMED_RECORD", detail))
                continue
            if before.size and not path.stat().st_size:
                detail = f"had {before.size} bytes, is empty now: its records were given up"
                problems.append(_FileProblem(name, "SOURCE_FILE_CHANGED", detail))
            files.append((name, path))
        return files, problems

    def _note_changed_files(self) -> None:
        for name, changed in self._manifest.changed.items():
            detail = (
                f"changed after it was landed, to {changed.now.size} bytes: what is new is not "
                "read; deliver it under another name"
            )
            for relation in changed.relations:
                if relation in self._sources and not self._is_committed(relation):
                    problem = _FileProblem(name, "SOURCE_FILE_CHANGED", detail)
                    self._add_problems(self._sources[relation], [problem])

    def _add_problems(self, source: SourceTable, problems: Sequence[_FileProblem]) -> None:
        if not problems:
            return
        relation, stamp = source.relation, self._stamp
        letters = [
            dead_letters.of_file(
                relation, each.name, each.code, each.detail, stamp.batch_id, stamp.landed_at
            )
            for each in problems
        ]
        known = self._small.get(relation) or self._nothing(source)
        counts, more = known.counts, len(letters)
        counts = replace(
            counts,
            produced=counts.produced + more,
            dead_letters=counts.dead_letters + more,
        )
        self._small[relation] = replace(
            known, letters=pa.concat_tables([known.letters, *letters]), counts=counts
        )

    def _nothing(self, source: SourceTable) -> SourceChange:
        empty = dead_letters.as_added(self._warehouse.arrow_schema(source.relation).empty_table())
        return SourceChange(
            empty, None, dead_letters.SCHEMA.empty_table(), Counts(0, 0, 0, 0), None
        )

    def _commit_letters(self) -> None:
        """One commit for each schema: a replay finds all of a batch's dead letters, or none."""
        names = sorted({*self._small, *self._bulk})
        for schema in sorted({name.split(".", 1)[0] for name in names}):
            relation = dead_letters.relation_of(schema)
            own = [name for name in names if name.split(".", 1)[0] == schema]
            small = [self._small[name].letters for name in own if name in self._small]
            large = [
                change.landing.letters()
                for name in own
                if (change := self._bulk.get(name)) and change.taken.produced > change.taken.good
            ]
            refused = sum(
                self._bulk[name].taken.produced - self._bulk[name].taken.good
                for name in own
                if name in self._bulk
            )
            tag = self._tag(relation)
            if refused > _MAX_LETTERS:
                frames = [*large, *self._as_frames(small, large[0])]
                every = reduce(lambda one, other: one.unionByName(other), frames)
                LargeLane(self._spark, self._warehouse).append(relation, every, tag)
                continue
            small += [plain_table(frame.toArrow()) for frame in large]
            if any(letters.num_rows for letters in small):
                letters = pa.concat_tables([each.cast(dead_letters.SCHEMA) for each in small])
                self._warehouse.commit(relation, dead_letters.as_added(letters), tag)

    def _as_frames(self, tables: Sequence[pa.Table], like: DataFrame) -> list[DataFrame]:
        rows = [row for table in tables for row in table.to_pylist()]
        return [self._spark.createDataFrame(rows, like.schema)] if rows else []

    def _commit_deletes(self) -> None:
        changes: dict[str, pa.Table | None] = {
            name: change.deletes for name, change in self._small.items()
        }
        changes |= {name: change.deletes for name, change in self._bulk.items()}
        for name, deletes in sorted(changes.items()):
            if deletes is not None and deletes.num_rows:
                source = self._sources[name]
                relation = deletes_relation(source)
                keys = stream_spec(source).keys
                self._warehouse.commit(relation, deletes, self._tag(relation), key=keys)

    def _commit(self, name: str) -> Landed:
        if name in self._bulk:
            return self._commit_bulk(name, self._bulk[name])
        change = self._small[name]
        landed = Landed(change.counts, change.newest_event_time)
        keys = stream_spec(self._sources[name]).keys
        self._warehouse.commit(name, change.landed, self._tag(name, landed), key=keys)
        return landed

    def _commit_bulk(self, name: str, change: _BulkChange) -> Landed:
        taken, deleted = change.taken, _added(change.deletes)
        extra = self._small.get(name)
        more = extra.counts.dead_letters if extra else 0

        def landed(written: int | None) -> Landed:
            count = _UNKNOWN if written is None else written + deleted
            dead = taken.produced - taken.good + more
            counts = Counts(taken.produced + more, count, taken.good - count, dead)
            return Landed(counts, taken.newest_event_time)

        def tag(written: int | None) -> Tag:
            return self._tag(name, landed(written), deleted)

        return landed(change.landing.land(taken.good, tag))

    def _is_committed(self, name: str) -> bool:
        return self._warehouse.is_tagged(name, self._tag(name))

    def _finished(self, name: str) -> Landed:
        """Return what the batch came to for a source that it has committed."""
        before = self._manifest.versions.get(name, -1)
        for version in range(self._warehouse.version(name), before, -1):
            found = self._warehouse.metadata_of(name, version)
            if found.get("batch_id") != str(self._stamp.batch_id) or "counts" not in found:
                continue
            counts = Counts(**json.loads(found["counts"]))
            if counts.landed == _UNKNOWN:
                rows = self._warehouse.row_count
                landed = rows(name, version) - rows(name, version - 1) + int(found["deleted"])
                good = counts.produced - counts.dead_letters
                counts = replace(counts, landed=landed, superseded=good - landed)
            newest = found.get("newest_event_time")
            return Landed(
                counts, datetime.fromisoformat(newest).astimezone(UTC) if newest else None
            )
        return Landed(Counts(0, 0, 0, 0), None)

    def _tag(self, relation: str, landed: Landed | None = None, deleted: int = 0) -> Tag:
        metadata = {"batch_id": str(self._stamp.batch_id), "relation": relation}
        if landed is not None:
            metadata["counts"] = json.dumps(asdict(landed.counts))
            metadata["deleted"] = str(deleted)
            if landed.newest_event_time is not None:
                metadata["newest_event_time"] = landed.newest_event_time.isoformat()
        return Tag(f"{self._epoch}/{relation}/{_GENERATION}", self._stamp.batch_id, metadata)


def stream_spec(source: SourceTable) -> StreamSpec:
    """Return how a source arrives; it is one that does."""
    assert source.stream is not None, source.unique_id
    return source.stream


def _rules(source: SourceTable) -> Rules:
    spec = stream_spec(source)
    return Rules(
        keys=spec.keys,
        sequence_by=spec.sequence_by,
        event_time=source.event_time,
        max_future=spec.max_future,
        max_age=spec.max_age,
        refuses_drift=spec.schema_drift == "fail",
    )


def _is_new(name: str, judged: pa.Table) -> bool:
    return name not in judged.column_names and name not in LANDING_NAMES


def _added(diff: pa.Table | None) -> int:
    from livemart.engine.tables import NEW_COUNT

    if diff is None:
        return 0
    return int(np.sum(diff.column(NEW_COUNT).to_numpy()))
