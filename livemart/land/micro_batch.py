"""Takes one micro-batch into the tables: reads, judges, decides, commits.

Used by `Landing` for each batch that Spark hands out. The driver itself decides as many records as
it can hold, and Spark's workers decide more. Both give a change of each source, committed in one
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.failpoints import failpoint
from livemart.land.bulk.landing import BulkLanding
from livemart.land.bulk.staging import stage
from livemart.land.commit_note import Landed, noted, read_note
from livemart.land.letters.drift import adopt, new_columns, rescued_fields
from livemart.land.letters.held_letters import in_portions
from livemart.land.letters.letter_box import DriftStop, FileLetters, LetterBox
from livemart.land.portions.change import PortionedChange, TooManyReplacedError
from livemart.land.records.judge import Group, read_alike
from livemart.land.records.schema import LANDING_NAMES, Stamp
from livemart.land.records.worker import Part
from livemart.land.sources.delivery import Delivery
from livemart.land.sources.files.delivered import DeliveredFiles
from livemart.land.sources.log_deliveries import LogDeliveries
from livemart.land.sources.manifest import Manifest
from livemart.land.tables import record_schema
from livemart.land.upsert.change import BatchSource, SourceChange
from livemart.land.upsert.deletes import deletes_relation
from livemart.project.graph import SourceTable
from livemart.project.landing_columns import RESCUED
from livemart.spark.executors import has_executors
from livemart.spark.tables_before import TablesBefore
from livemart.state.counts import Counts
from livemart.state.places import LocalFolder, StateFolder
from livemart.storage.location import Location, StoragePlace
from livemart.storage.scratch import drop_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Bytes of judged records that are decided together: about 100,000 orders.
_PORTION_BYTES = 32 << 20
_ANY_CORES = float("inf")
# Judged records may take so many times the bytes of which they were read.
_JUDGED = 4


@dataclass(frozen=True, slots=True)
class Limit:
    """A delivery beyond `max_bytes` is landed by Spark, or in portions by the driver.

    Spark's workers do it on machines of more than `most_cores`.
    """

    max_bytes: float = 64 << 20
    # Measured on two cores: the driver lands 200,000 records a second, a core of Spark's 35,000.
    most_cores: float = 6

    @classmethod
    def of(cls, lane: str) -> Limit:
        """Return the limit that the setting `lane` stands for."""
        limits = {"small": cls(most_cores=float("inf")), "large": cls(-1, most_cores=0)}
        return limits.get(lane, cls())


# The driver decides the change by the records of one source, at once or in portions, or Spark's
# workers do; nothing of it is committed yet.
LandedChange = SourceChange | PortionedChange | BulkLanding
DeliveryReader = DeliveredFiles | LogDeliveries


@dataclass(eq=False)
class MicroBatch:
    """The records that a manifest names, landed at most once in each table."""

    spark: SparkSession
    warehouse: Warehouse
    readers: Mapping[str, DeliveryReader]
    sources: Mapping[str, SourceTable]
    epoch: str
    manifest: Manifest
    limit: Limit
    _: KW_ONLY
    is_replay: bool

    def __post_init__(self) -> None:
        self._tags = Tags(self.epoch, self.manifest.batch_id)
        self._stamp = Stamp(self.manifest.batch_id, self.manifest.landed_at)
        self._staging = LocalFolder(self.warehouse.place).staging
        self._letters = LetterBox(self.warehouse, self._tags.rows)
        self._file_letters = FileLetters(self.warehouse, self._tags, self._stamp)
        self._drift_stop = DriftStop(self.warehouse, self._tags)
        self._changes: dict[str, LandedChange] = {}
        self._refused_deliveries: Counter[str] = Counter()
        self._portioned: list[PortionedChange] = []
        self._is_bulk = False
        # The relations whose records are being read; the same list all along.
        self.reading: list[str] = []

    @property
    def _bulk_staging(self) -> StoragePlace:
        """The folder of bulk loads: executors of a cluster see it, too."""
        if has_executors(self.spark.sparkContext.master):
            return StateFolder(self.warehouse.place).staging
        return self._staging

    def waiting(self) -> list[str]:
        """Return the relations that are still to be landed."""
        return [
            name
            for name in self.manifest.relations
            if name in self.sources and not self.warehouse.is_tagged(name, self._tags.rows(name))
        ]

    def land(self) -> dict[str, Landed]:
        """Land the waiting records and return the result of the batch, by relation.

        Raises:
            SourceError: SCHEMA_DRIFT.
        """
        waiting = self.waiting()
        landed = {
            name: self._finished(name)
            for name in self.manifest.relations
            if name in self.sources and name not in waiting
        }
        try:
            for names, delivery in self._groups(waiting):
                self._decide(names, delivery)
            if self.is_replay:
                self._drift_stop.withdraw([self.sources[name] for name in waiting])
            self._letters.commit()
            self._file_letters.commit()
            self._commit_deletes()
            failpoint("landing.after_deletes")
            for number, name in enumerate(sorted({*self._changes, *self._refused_deliveries}), 1):
                landed[name] = self._commit(name)
                failpoint(f"landing.after_table.{number}")
        finally:
            for change in self._portioned:
                change.discard()
            drop_folder(self._staging)
            # After a kill the replay may be a small one.
            if self._is_bulk or (self.is_replay and Location.of(self.warehouse.place).scheme):
                drop_folder(self._bulk_staging)
        return landed

    def _groups(self, waiting: Sequence[str]) -> list[tuple[list[str], Delivery]]:
        """Return the relations that read the same delivery into the same columns."""
        groups: dict[tuple[object, ...], tuple[list[str], Delivery]] = {}
        for number, delivery in enumerate(self.manifest.deliveries):
            for name in delivery.relations:
                if name not in waiting:
                    continue
                source = self.sources[name]
                schema = record_schema(self.warehouse, source)
                form = (number, schema, *read_alike(source))
                groups.setdefault(form, ([], delivery))[0].append(name)
        return list(groups.values())

    def _decide(self, names: Sequence[str], delivery: Delivery) -> None:
        """Read a delivery for a group and compute its changes; nothing is committed yet."""
        self.reading[:] = names
        sources = [self.sources[name] for name in names]
        reader = self.readers[names[0]]
        problems = reader.problems(delivery)
        for source in sources:
            for problem in problems:
                self._file_letters.put(source, problem)
                self._refused_deliveries[source.relation] += 1
        parts = reader.parts(delivery, sources[0].record_rules.format)
        if not parts:
            return
        schema = record_schema(self.warehouse, sources[0])
        group = Group.of(sources, schema, self._stamp.landed_at)
        judged = None
        if reader.size(delivery) <= self.limit.max_bytes:
            judged = self._read(parts, group)
        if judged is not None:
            for position, source in enumerate(sources):
                of_source = self._of_source(source, position)
                self._take(source, of_source.change(self._adopted(source, judged)))
        elif not self._decide_portions(names[0], sources, group, parts):
            self._is_bulk = True
            staged = stage(self.spark, self._bulk_staging / names[0], group, parts)
            for position, source in enumerate(sources):
                self._take(source, self._bulk_change(source, staged, position))

    def _decide_portions(
        self, name: str, sources: Sequence[SourceTable], group: Group, parts: Sequence[Part]
    ) -> bool:
        """Decide a large delivery in the driver; return False if it is left to Spark."""
        if not self._has_few_cores():
            return False
        folder = self._staging / name
        changes = [
            PortionedChange(self._of_source(source, position), folder / str(position))
            for position, source in enumerate(sources)
        ]
        self._portioned += changes
        tables = chain.from_iterable(part.read(group) for part in parts)
        for portion in in_portions(tables, _PORTION_BYTES):
            judged = portion.combine_chunks()
            for source, change in zip(sources, changes, strict=True):
                change.take(self._adopted(source, judged))
        try:
            for change in changes:
                change.decide()
        except TooManyReplacedError:
            for change in changes:
                change.discard()
            return False
        for source, change in zip(sources, changes, strict=True):
            self._take(source, change)
        return True

    def _has_few_cores(self) -> bool:
        most = self.limit.most_cores
        # Without a limit, or below any, Spark need not be asked.
        return most > 0 and (
            most == _ANY_CORES or self.spark.sparkContext.defaultParallelism <= most
        )

    def _read(self, parts: Sequence[Part], group: Group) -> pa.Table | None:
        """Return the judged records, None if they are more than the driver is to hold.

        How long records are that are compressed, or come from a log, shows when they are read.
        """
        tables, size = [group.judged.empty_table()], 0
        for table in chain.from_iterable(part.read(group) for part in parts):
            tables.append(table)
            size += table.nbytes
            if size > _JUDGED * self.limit.max_bytes:
                return None
        return pa.concat_tables(tables).combine_chunks()

    def _of_source(self, source: SourceTable, position: int) -> BatchSource:
        before = TablesBefore(self.spark, self.warehouse, self.manifest.versions)
        return BatchSource(source, position, self._stamp, before)

    def _adopted(self, source: SourceTable, judged: pa.Table) -> pa.Table:
        """Return judged records with the columns that drift brings to the table."""
        if source.row_rules.schema_drift != "evolve":
            return judged
        self._evolve(source, rescued_fields(judged))
        stored = self.warehouse.arrow_schema(source.relation).names
        others = {*judged.column_names, *LANDING_NAMES}
        return adopt(judged, [name for name in stored if name not in others])

    def _bulk_change(self, source: SourceTable, staged: DataFrame, position: int) -> BulkLanding:
        if source.row_rules.schema_drift == "evolve":
            fields = f"select distinct explode(map_keys({RESCUED})) as field from {{staged}}"
            rows = self.spark.sql(fields, staged=staged).collect()
            self._evolve(source, [row.field for row in rows])
        folder = self._bulk_staging / f"{source.relation}.change"
        return BulkLanding(self._of_source(source, position), staged, folder)

    def _take(self, source: SourceTable, change: LandedChange) -> None:
        """Keep a change until it is committed."""
        self._changes[source.relation] = change
        if source.row_rules.schema_drift == "fail":
            self._drift_stop.check(source, change.letters)
        # Its counts know how many there are without a look.
        if change.counts.dead_letters:
            self._letters.put(source.schema, change.letters)

    def _evolve(self, source: SourceTable, fields: Sequence[str]) -> None:
        relation = source.relation
        added = new_columns(fields, self.warehouse.arrow_schema(relation).names)
        if added:
            tag = self._tags.columns(relation)
            columns = [pa.field(name, pa.string()) for name in added]
            self.warehouse.add_columns(relation, columns, tag)

    def _commit_deletes(self) -> None:
        for name, change in sorted(self._changes.items()):
            if change.deletes is not None and change.deletes.num_rows:
                source = self.sources[name]
                relation = deletes_relation(source)
                tag = self._tags.rows(relation)
                self.warehouse.commit(relation, change.deletes, tag, key=source.row_rules.keys)

    def _commit(self, name: str) -> Landed:
        refused, change = self._refused_deliveries[name], self._changes.get(name)
        counts = Counts(produced=refused, dead_letters=refused)
        if change is None:
            return Landed(counts)
        landed = Landed(change.counts + counts, change.newest_event_time, change.drift)
        tag = noted(self._tags.rows(name), landed)
        change.commit(tag)
        return landed

    def _finished(self, name: str) -> Landed:
        before = self.manifest.versions.get(name, -1)
        return read_note(self.warehouse, name, self._stamp.batch_id, before)
