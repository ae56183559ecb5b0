"""Takes one micro-batch into the tables: reads, judges, decides, commits.

Used by `Landing` for each batch that Spark hands out. What the driver holds it decides itself, more
than that is decided by Spark's workers; both are a change of each source, committed in one order.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.failpoints import failpoint
from livemart.land.bulk.landing import BulkLanding
from livemart.land.bulk.staging import stage
from livemart.land.commit_note import Landed, Stamp, noted, read_note
from livemart.land.files.folder import LandingFolder
from livemart.land.files.manifest import Manifest
from livemart.land.files.problems import FileProblem, changed_since, find_readable
from livemart.land.letters.drift import adopt, new_columns, rescued_fields
from livemart.land.letters.drift_stop import DriftStop
from livemart.land.letters.file_letters import FileLetters
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.letter_box import LetterBox
from livemart.land.records.judge import Group, Rules
from livemart.land.records.parse import parse_file
from livemart.land.records.schema import LANDING_NAMES
from livemart.land.tables import record_schema
from livemart.land.upsert.change import SourceChange, change_of
from livemart.land.upsert.delete_condition import holds
from livemart.land.upsert.deletes import deletes_relation
from livemart.project.graph import SourceTable
from livemart.project.landing_columns import RESCUED
from livemart.spark.tables_before import TablesBefore
from livemart.state.counts import Counts
from livemart.state.places import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Gzip files of records are about this much larger than they look.
_GZIP_FACTOR = 8


@dataclass(frozen=True, slots=True)
class Limit:
    """Files of a group of sources beyond `max_bytes` are landed by Spark."""

    max_bytes: float = 64 << 20

    @classmethod
    def of(cls, lane: str) -> Limit:
        """Return the limit that the setting `lane` stands for."""
        return {"small": cls(float("inf")), "large": cls(-1)}.get(lane, cls())


class LandedChange(Protocol):
    """What the records of one source change in its tables; nothing of it is committed yet.

    The driver decides it (`SourceChange`), or Spark's workers do (`BulkLanding`).

    `deletes`: the change set of remembered deletes, None for a source whose records hold none;
    `letters`: refused records; `newest_event_time`: of the records that were taken, UTC.
    """

    @property
    def deletes(self) -> pa.Table | None: ...
    @property
    def letters(self) -> Letters: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def newest_event_time(self) -> datetime | None: ...
    def commit(self, tag: Tag) -> None:
        """Commit the rows in one commit."""
        ...

    def close(self) -> None:
        """Let go of what was kept while the batch landed."""
        ...


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
        *,
        is_replay: bool,
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._folder = folder
        self._sources = sources
        self._tags = Tags(epoch, manifest.batch_id)
        self._manifest = manifest
        self._limit = limit
        self._is_replay = is_replay
        self._stamp = Stamp(manifest.batch_id, manifest.landed_at)
        self._staging = StateFolder(warehouse.root).staging
        self._letters = LetterBox(spark, warehouse, self._tags.rows)
        self._file_letters = FileLetters(warehouse, self._tags, self._stamp)
        self._drift_stop = DriftStop(spark, warehouse, self._tags)
        self._changes: dict[str, LandedChange] = {}
        self._refused_files: Counter[str] = Counter()

    def waiting(self) -> list[str]:
        """Return the relations that are still to be landed."""
        return [
            name
            for name in self._manifest.relations
            if name in self._sources and not self._is_committed(name)
        ]

    def land(self) -> dict[str, Landed]:
        """Land what is waiting and return what the batch came to, by relation.

        Raises:
            SourceError: SCHEMA_DRIFT.
        """
        waiting = self.waiting()
        landed = {
            name: self._finished(name)
            for name in self._manifest.relations
            if name in self._sources and name not in waiting
        }
        try:
            for names in self._groups(waiting):
                self._decide(names)
            self._refuse_changed_files()
            if self._is_replay:
                self._drift_stop.withdraw([self._sources[name] for name in waiting])
            self._letters.commit()
            self._file_letters.commit()
            self._commit_deletes()
            failpoint("landing.after_deletes")
            for number, name in enumerate(sorted({*self._changes, *self._refused_files}), 1):
                landed[name] = self._commit(name)
                failpoint(f"landing.after_table.{number}")
        finally:
            for change in self._changes.values():
                change.close()
            shutil.rmtree(self._staging, ignore_errors=True)
        return landed

    def _groups(self, waiting: Sequence[str]) -> list[list[str]]:
        """Return the relations that read the same files into the same columns."""
        groups: dict[tuple[object, ...], list[str]] = {}
        for name in waiting:
            source = self._sources[name]
            schema = record_schema(self._warehouse, source)
            files = self._manifest.relations[name]
            form = (source.arrival.format, source.arrival.empty_is_null)
            groups.setdefault((*form, schema, files), []).append(name)
        return list(groups.values())

    def _decide(self, names: Sequence[str]) -> None:
        """Read a group's files and work out what changes; nothing of it is committed yet."""
        sources = [self._sources[name] for name in names]
        group = Group(
            sources[0].arrival.format,
            record_schema(self._warehouse, sources[0]),
            tuple(map(Rules.of, sources)),
            self._stamp.landed_at,
            sources[0].arrival.empty_is_null,
        )
        paths = self._manifest.relations[names[0]]
        files, problems = find_readable(self._folder, self._manifest, paths)
        if files and self._size(files) > self._limit.max_bytes:
            staged = stage(self._spark, self._staging / names[0], group, files)
            for position, source in enumerate(sources):
                self._take(source, self._bulk_change(source, staged, position))
        else:
            tables = [table for name, path in files for table in parse_file(group, path, name)]
            judged = pa.concat_tables([group.judged.empty_table(), *tables]).combine_chunks()
            for position, source in enumerate(sources):
                self._take(source, self._small_change(source, judged, position))
        for source in sources:
            self._refuse_files(source, problems)

    def _size(self, files: Sequence[tuple[str, Path]]) -> int:
        return sum(
            self._manifest.files[name].size * (_GZIP_FACTOR if name.endswith(".gz") else 1)
            for name, _ in files
        )

    def _small_change(self, source: SourceTable, judged: pa.Table, position: int) -> SourceChange:
        spec = source.arrival
        if spec.schema_drift == "evolve":
            self._evolve(source, rescued_fields(judged))
            stored = self._warehouse.arrow_schema(source.relation).names
            judged = adopt(judged, [name for name in stored if _is_new(name, judged)])

        def is_delete(rows: pa.Table) -> np.ndarray:
            return holds(spec.apply_as_deletes, rows, self._spark)

        return change_of(
            source,
            judged,
            position,
            self._stamp,
            self._warehouse,
            lambda name: self._manifest.versions[name],
            is_delete,
        )

    def _bulk_change(self, source: SourceTable, staged: DataFrame, position: int) -> BulkLanding:
        if source.arrival.schema_drift == "evolve":
            fields = f"select distinct explode(map_keys({RESCUED})) as field from {{staged}}"
            rows = self._spark.sql(fields, staged=staged).collect()
            self._evolve(source, [row.field for row in rows])
        before = TablesBefore(self._spark, self._warehouse, self._manifest.versions)
        return BulkLanding(before, staged, source, position, self._stamp)

    def _take(self, source: SourceTable, change: LandedChange) -> None:
        """Keep a change until it is committed."""
        self._changes[source.relation] = change
        if source.arrival.schema_drift == "fail":
            self._drift_stop.check(source, change.letters)
        # Its counts know how many there are without a look.
        if change.counts.dead_letters:
            self._letters.put(source.schema, change.letters)

    def _evolve(self, source: SourceTable, fields: Sequence[str]) -> None:
        relation = source.relation
        added = new_columns(fields, self._warehouse.arrow_schema(relation).names)
        if added:
            tag = self._tags.columns(relation)
            columns = [pa.field(name, pa.string()) for name in added]
            self._warehouse.add_columns(relation, columns, tag)

    def _refuse_changed_files(self) -> None:
        for name, changed in self._manifest.changed.items():
            for relation in changed.relations:
                if relation in self._sources and not self._is_committed(relation):
                    self._refuse_files(self._sources[relation], [changed_since(name, changed)])

    def _refuse_files(self, source: SourceTable, problems: Sequence[FileProblem]) -> None:
        for problem in problems:
            self._file_letters.put(source, problem)
            self._refused_files[source.relation] += 1

    def _commit_deletes(self) -> None:
        for name, change in sorted(self._changes.items()):
            if change.deletes is not None and change.deletes.num_rows:
                source = self._sources[name]
                relation = deletes_relation(source)
                tag = self._tags.rows(relation)
                self._warehouse.commit(relation, change.deletes, tag, key=source.arrival.keys)

    def _commit(self, name: str) -> Landed:
        refused, change = self._refused_files[name], self._changes.get(name)
        if change is None:
            return Landed(Counts().with_dead_letters(refused))
        landed = Landed(change.counts.with_dead_letters(refused), change.newest_event_time)
        tag = noted(self._tags.rows(name), landed)
        change.commit(tag)
        return landed

    def _is_committed(self, name: str) -> bool:
        return self._warehouse.is_tagged(name, self._tags.rows(name))

    def _finished(self, name: str) -> Landed:
        before = self._manifest.versions.get(name, -1)
        return read_note(self._warehouse, name, self._stamp.batch_id, before)


def _is_new(name: str, judged: pa.Table) -> bool:
    return name not in judged.column_names and name not in LANDING_NAMES
