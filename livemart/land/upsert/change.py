"""Computes in the driver how the judged records of one source change its tables.

Used by micro-batches that the driver holds, and by those that it takes in portions. Nothing is
committed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.change_sets import as_added, as_removed
from livemart.delta.lookup import find_stored
from livemart.delta.tags import Tag
from livemart.delta.version import TableVersion
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.seen_drift import Sightings, seen_drift, sightings_in
from livemart.land.records.judge import refused_by, verdict
from livemart.land.records.schema import TIMESTAMP, Stamp
from livemart.land.upsert.delete_condition import holds
from livemart.land.upsert.deletes import deletes_relation, remember
from livemart.land.upsert.upsert import MOVED, Upsert, moved_detail
from livemart.project.graph import SourceTable
from livemart.project.landing_columns import BATCH_ID, LANDED_AT
from livemart.spark.tables_before import TablesBefore
from livemart.state.counts import Counts
from livemart.state.drift import Drift


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The change that the records of one source make in its tables; nothing is committed yet."""

    source: SourceTable
    warehouse: Warehouse
    landed: pa.Table
    """The change set of the landed table."""
    deletes: pa.Table | None
    """That of remembered deletes; None for a source whose records hold none."""
    letters: Letters
    """The refused records."""
    counts: Counts
    newest_event_time: datetime | None
    """The newest one among the records that were taken, UTC."""
    drift: Drift = ()
    """How the records differ from the declared columns."""

    def commit(self, tag: Tag) -> None:
        """Commit the rows in one commit."""
        keys = self.source.row_rules.keys
        self.warehouse.commit(self.source.relation, self.landed, tag, key=keys)


@dataclass(frozen=True, slots=True)
class TakenRecords:
    """The judged records that a source takes, and those that it refuses."""

    good: pa.Table
    """The records that it takes, as judged."""
    rows: pa.Table
    """The same as rows of the landed table."""
    deleting: np.ndarray
    """True for each row that deletes its key."""
    letters: pa.Table
    """The other records as dead letters."""
    passed_over: int
    """The number of records that say nothing of a row."""

    @property
    def live(self) -> pa.Table:
        """The rows without deletes, which may well hold no more than their key."""
        return self.rows.filter(pa.array(~self.deleting))

    @property
    def count(self) -> int:
        """How many records there are."""
        return int(self.good.num_rows + self.letters.num_rows + self.passed_over)


@dataclass(frozen=True, slots=True)
class BatchSource:
    """One source of a micro-batch, with the rules and stored rows that decide its records.

    `position`: of the source in its group of judged records; `before`: the tables before the batch;
    `stamp`: batch id and arrival time. Fields that became columns are in the table, and rescued no
    more.
    """

    source: SourceTable
    position: int
    stamp: Stamp
    before: TablesBefore

    @property
    def files_before(self) -> TableVersion:
        """The landed table before the batch."""
        relation = self.source.relation
        return self.before.warehouse.files(relation, self.before.versions[relation])

    @property
    def schema(self) -> pa.Schema:
        """The columns that the landed table has now."""
        return self.before.warehouse.arrow_schema(self.source.relation)

    def change(self, judged: pa.Table) -> SourceChange:
        """Return the changes by the records of its group, in file and line order."""
        records = self.taken(judged)
        drift = self.drift(sightings_in(judged, self.position, records.live, self.source))
        return replace(self.decided(records), drift=drift)

    def drift(self, sightings: Sightings) -> Drift:
        """Return how a batch that shows this differs from the table before it."""
        return seen_drift(sightings, self.files_before, self.schema.names)

    def taken(self, judged: pa.Table) -> TakenRecords:
        """Return the judged records that the source takes."""
        codes = judged.column(verdict("code", self.position))
        # Most batches have no other records, and a filter copies them all.
        good = judged if codes.null_count == len(codes) else judged.filter(codes.is_null())
        refused = refused_by(judged, self.position)
        relation, rules = self.source.relation, self.source.row_rules
        letters = dead_letters.from_judged(refused, self.position, relation, self.stamp)
        rows = _stamped(good, self.stamp, self.schema)
        condition = rules.apply_as_deletes if rules.keys else None
        deleting = holds(condition, rows, self.before.spark)
        passed_over = judged.num_rows - good.num_rows - refused.num_rows
        return TakenRecords(good, rows, deleting, letters, passed_over)

    def decided(self, records: TakenRecords) -> SourceChange:
        """Return the changes by the records: with keys they are all versions of some keys."""
        source, rows, letters = self.source, records.rows, records.letters
        landed, count, deletes = as_added(rows), rows.num_rows, None
        if source.row_rules.keys:
            stored = self._stored(source.relation, rows)
            remembered = self._stored(deletes_relation(source), rows)
            change = Upsert.of(source).change(stored, remembered, rows, records.deleting)
            if change.is_refused.any():
                refused = records.good.filter(pa.array(change.is_refused))
                moved = dead_letters.of_records(
                    refused, source.relation, MOVED, moved_detail(source), self.stamp
                )
                letters = pa.concat_tables([letters, moved])
                rows = rows.filter(pa.array(~change.is_refused))
            moves = [as_removed(change.removed), as_added(change.written)]
            landed = pa.concat_tables(moves).combine_chunks()
            count = change.written.num_rows + change.deleting.num_rows
            deletes = remember(change.deleting, change.forgotten)
        return SourceChange(
            source=source,
            warehouse=self.before.warehouse,
            landed=landed,
            deletes=deletes,
            letters=Letters(letters),
            counts=Counts(
                produced=records.count,
                landed=count,
                superseded=records.count - count - letters.num_rows,
                dead_letters=letters.num_rows,
            ),
            newest_event_time=_newest_time(source, rows),
        )

    def _stored(self, relation: str, rows: pa.Table) -> pa.Table:
        """Return the stored rows of the keys of rows, in the columns that the table has since."""
        warehouse, version = self.before.warehouse, self.before.versions[relation]
        keys = list(self.source.row_rules.keys)
        stored = find_stored(warehouse, relation, version, rows.select(keys), keys=keys)
        return _widened(stored, warehouse.arrow_schema(relation))


def _newest_time(source: SourceTable, rows: pa.Table) -> datetime | None:
    """Return the newest event time of some rows in UTC, None if there is none."""
    if source.event_time is None or not rows.num_rows:
        return None
    column = rows.column(source.event_time)
    newest = pc.max(column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column)
    if not newest.is_valid:
        return None
    moment: datetime = newest.as_py()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of an earlier version with the columns and types that the table has since."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _stamped(rows: pa.Table, stamp: Stamp, schema: pa.Schema) -> pa.Table:
    """Return good records as rows of the landed table."""
    count = rows.num_rows
    stamps = {
        LANDED_AT: pa.repeat(pa.scalar(stamp.landed_at, TIMESTAMP), count),
        BATCH_ID: pa.repeat(pa.scalar(stamp.batch_id, pa.int64()), count),
    }
    columns = [
        stamps[field.name] if field.name in stamps else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema).combine_chunks()
