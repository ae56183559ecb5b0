"""Works out what the judged records of one source change in its tables, in the driver.

Used by micro-batches that the driver holds. Nothing is committed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.change_sets import as_added, as_removed
from livemart.delta.lookup import find_stored
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import RowLetters
from livemart.land.letters.seen_drift import seen_drift, sightings_in
from livemart.land.records.judge import refused_by, verdict
from livemart.land.records.schema import TIMESTAMP, Stamp
from livemart.land.upsert.deletes import deletes_relation, remember
from livemart.land.upsert.event_time import MOVED, moved_detail
from livemart.land.upsert.upsert import Upsert
from livemart.project.graph import SourceTable
from livemart.project.landing_columns import BATCH_ID, LANDED_AT
from livemart.state.counts import Counts
from livemart.state.drift import Drift


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Change sets of the landed table and of the remembered deletes, dead letters, and counts.

    `drift`: how the records differ from the declared columns.
    """

    source: SourceTable
    warehouse: Warehouse
    landed: pa.Table
    deletes: pa.Table | None
    letters: RowLetters
    counts: Counts
    newest_event_time: datetime | None
    drift: Drift = ()

    def commit(self, tag: Tag) -> None:
        keys = self.source.row_rules.keys
        self.warehouse.commit(self.source.relation, self.landed, tag, key=keys)


def change_of(
    source: SourceTable,
    judged: pa.Table,
    position: int,
    stamp: Stamp,
    warehouse: Warehouse,
    version_of: Callable[[str], int],
    is_delete: Callable[[pa.Table], np.ndarray],
) -> SourceChange:
    """Return what one source's records change, given the tables before the batch.

    (Fields that became columns are in the table, and rescued no more.)

    Args:
        source: a streaming source.
        judged: records of its group, in file and line order.
        position: of the source in the group.
        stamp: batch id and arrival time.
        warehouse: the tables.
        version_of: version of a table before the batch.
        is_delete: evaluates `apply_as_deletes` on rows.
    """
    records = taken(source, judged, position, stamp, warehouse, is_delete)
    before = warehouse.files(source.relation, version_of(source.relation))
    sightings = sightings_in(judged, position, records.live, source)
    drift = seen_drift(sightings, before, records.rows.schema.names)
    if source.row_rules.keys:
        change = upserted(source, records, stamp, warehouse, version_of)
    else:
        change = appended(source, records, warehouse)
    return replace(change, drift=drift)


@dataclass(frozen=True, slots=True)
class TakenRecords:
    """What a source takes of judged records, and what it refuses.

    `good`: those it takes, as judged; `rows`: the same as rows of the landed table; `deleting`:
    which of them delete their key; `letters`: the others as dead letters; `passed_over`: how many
    say nothing of a row.
    """

    good: pa.Table
    rows: pa.Table
    deleting: np.ndarray
    letters: pa.Table
    passed_over: int

    @property
    def live(self) -> pa.Table:
        """The rows without deletes, which may well hold no more than their key."""
        return self.rows.filter(pa.array(~self.deleting))

    @property
    def count(self) -> int:
        """How many records there are."""
        return int(self.good.num_rows + self.letters.num_rows + self.passed_over)


def taken(
    source: SourceTable,
    judged: pa.Table,
    position: int,
    stamp: Stamp,
    warehouse: Warehouse,
    is_delete: Callable[[pa.Table], np.ndarray],
) -> TakenRecords:
    """Return what a source takes of judged records; arguments as for `change_of`."""
    good = judged.filter(judged.column(verdict("code", position)).is_null())
    refused = refused_by(judged, position)
    letters = dead_letters.from_judged(refused, position, source.relation, stamp)
    rows = _stamped(good, stamp, warehouse.arrow_schema(source.relation))
    deleting = is_delete(rows) if source.row_rules.keys else np.zeros(rows.num_rows, dtype=bool)
    passed_over = judged.num_rows - good.num_rows - refused.num_rows
    return TakenRecords(good, rows, deleting, letters, passed_over)


def appended(source: SourceTable, records: TakenRecords, warehouse: Warehouse) -> SourceChange:
    """Return what the records of a source without keys change."""
    rows, letters = records.rows, records.letters
    counts = _counts(records.count, rows.num_rows, letters.num_rows)
    newest, held = newest_time(source, rows), RowLetters(letters)
    return SourceChange(source, warehouse, as_added(rows), None, held, counts, newest)


def newest_time(source: SourceTable, rows: pa.Table) -> datetime | None:
    """Return the newest event time of some rows in UTC, None if there is none."""
    if source.event_time is None or not rows.num_rows:
        return None
    column = rows.column(source.event_time)
    newest = pc.max(column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column)
    if not newest.is_valid:
        return None
    moment: datetime = newest.as_py()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def upserted(
    source: SourceTable,
    records: TakenRecords,
    stamp: Stamp,
    warehouse: Warehouse,
    version_of: Callable[[str], int],
) -> SourceChange:
    """Return what the records of a source with keys change: all versions of some keys."""
    keys = list(source.row_rules.keys)
    rows, letters = records.rows, records.letters
    deletes = deletes_relation(source)
    version = version_of(source.relation)
    stored = find_stored(warehouse, source.relation, version, rows.select(keys), keys=keys)
    stored = _widened(stored, rows.schema)
    remembered = find_stored(warehouse, deletes, version_of(deletes), rows.select(keys), keys=keys)
    remembered = _widened(remembered, warehouse.arrow_schema(deletes))
    upsert = Upsert.of(source)
    change = upsert.change(stored, remembered, rows, records.deleting)
    if change.is_refused.any():
        refused, detail = records.good.filter(pa.array(change.is_refused)), moved_detail(source)
        moved = dead_letters.of_records(refused, source.relation, MOVED, detail, stamp)
        letters = pa.concat_tables([letters, moved])
    moves = [as_removed(change.removed), as_added(change.written)]
    landed = pa.concat_tables(moves).combine_chunks()
    upserted_rows = rows.filter(pa.array(~change.is_refused))
    count = change.written.num_rows + change.deleting.num_rows
    counts = _counts(records.count, count, letters.num_rows)
    noted = remember(change.deleting, change.forgotten)
    newest, held = newest_time(source, upserted_rows), RowLetters(letters)
    return SourceChange(source, warehouse, landed, noted, held, counts, newest)


def _counts(produced: int, landed: int, dead_letters: int) -> Counts:
    return Counts(produced, landed, produced - landed - dead_letters, dead_letters)


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
        LANDED_AT: pa.array([stamp.landed_at] * count, TIMESTAMP),
        BATCH_ID: pa.array([stamp.batch_id] * count, pa.int64()),
    }
    columns = [
        stamps[field.name] if field.name in stamps else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema).combine_chunks()
