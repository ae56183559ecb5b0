"""What the judged records of one source change in its landed table and its remembered deletes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.engine import dead_letters
from livemart.engine.bags import row_codes
from livemart.engine.dead_letters import as_added
from livemart.engine.ordering import Versions, canonical_text, decide
from livemart.engine.records.reader import verdict
from livemart.engine.records.schema import (
    BATCH_ID,
    LANDED_AT,
    LANDING_FIELDS,
    ORIGIN,
    RESCUED,
    TIMESTAMP,
)
from livemart.engine.stored import find_stored
from livemart.engine.tables import NEW_COUNT, OLD_COUNT, Warehouse
from livemart.project.graph import SourceTable, StreamSpec

MOVED_DETAIL = "{} differs from the key's, which is promised to be fixed"


@dataclass(frozen=True, slots=True)
class Counts:
    """Records of one source in one batch: produced = landed + superseded + dead_letters."""

    produced: int
    landed: int
    superseded: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """The micro-batch that rows belong to."""

    batch_id: int
    landed_at: datetime


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Change sets of the landed table and of the remembered deletes, dead letters, and counts."""

    landed: pa.Table
    deletes: pa.Table | None
    letters: pa.Table
    counts: Counts
    newest_event_time: datetime | None


def deletes_relation(source: SourceTable) -> str:
    """Return the table of a source's remembered deletes."""
    schema, identifier = source.relation.split(".", 1)
    return f"{schema}._deletes_{identifier}"


def deletes_schema(source: SourceTable, landed: pa.Schema) -> pa.Schema:
    """Return the columns of remembered deletes: keys, sequence, and where the delete came from."""
    spec = _spec(source)
    names = dict.fromkeys([*spec.keys, *spec.sequence_by])
    added = [field for field in LANDING_FIELDS if field.name != RESCUED]
    return pa.schema([*(landed.field(name) for name in names), *added])


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

    Args:
        source: a streaming source.
        judged: records of its group, in file and line order.
        position: of the source in the group.
        stamp: batch id and arrival time.
        warehouse: the tables.
        version_of: version of a table before the batch.
        is_delete: evaluates `apply_as_deletes` on rows.
    """
    codes = judged.column(verdict("code", position))
    schema = warehouse.arrow_schema(source.relation)
    rows = _stamped(judged.filter(codes.is_null()), stamp, schema)
    letters = dead_letters.from_judged(
        judged.filter(codes.is_valid()), position, source.relation, stamp.batch_id, stamp.landed_at
    )
    if not _spec(source).keys:
        counts = Counts(judged.num_rows, rows.num_rows, 0, letters.num_rows)
        return SourceChange(as_added(rows), None, letters, counts, newest_time(source, rows))
    return _keyed(source, rows, letters, stamp, warehouse, version_of, is_delete)


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


def _keyed(
    source: SourceTable,
    rows: pa.Table,
    letters: pa.Table,
    stamp: Stamp,
    warehouse: Warehouse,
    version_of: Callable[[str], int],
    is_delete: Callable[[pa.Table], np.ndarray],
) -> SourceChange:
    spec = _spec(source)
    keys = list(spec.keys)
    produced = rows.num_rows + letters.num_rows
    deletes = deletes_relation(source)
    version = version_of(source.relation)
    stored = find_stored(warehouse, source.relation, version, rows.select(keys), keys=keys)
    stored = _widened(stored, rows.schema)
    remembered = find_stored(warehouse, deletes, version_of(deletes), rows.select(keys), keys=keys)
    mask = is_delete(rows)
    if spec.event_time_is_fixed and source.event_time is not None:
        moved = _moved(spec, source.event_time, stored, rows, mask)
        letters = pa.concat_tables([letters, _moved_letters(source, rows, moved, stamp)])
        kept = pa.array(~moved)
        rows, mask = rows.filter(kept), mask[~moved]
    landing = {field.name for field in LANDING_FIELDS} - {RESCUED}
    columns = tuple(name for name in rows.column_names if name not in landing)
    outcome = decide(Versions(spec.keys, spec.sequence_by, columns, stored, remembered, rows, mask))
    written = rows.take(pa.array(outcome.written))
    landed = pa.concat_tables(
        [_as_removed(stored.take(pa.array(outcome.removed))), as_added(written)]
    ).combine_chunks()
    count = len(outcome.written) + len(outcome.deleting)
    counts = Counts(produced, count, rows.num_rows - count, letters.num_rows)
    noted = _remember(rows.take(pa.array(outcome.deleting)), remembered, keys)
    return SourceChange(landed, noted, letters, counts, newest_time(source, rows))


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of an earlier version with the columns that were added since."""
    columns = [
        rows.column(field.name)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _remember(deleting: pa.Table, remembered: pa.Table, keys: list[str]) -> pa.Table:
    """Replace what is remembered of the keys that are deleted once more."""
    names = remembered.column_names
    both = pa.concat_tables([remembered.select(keys), deleting.select(keys)]).combine_chunks()
    codes = row_codes([both.column(name) for name in keys], len(both))
    split = remembered.num_rows
    replaced = remembered.filter(pa.array(np.isin(codes[:split], codes[split:])))
    return pa.concat_tables([_as_removed(replaced), as_added(deleting.select(names))])


def _moved(
    spec: StreamSpec, event_time: str, stored: pa.Table, rows: pa.Table, is_delete: np.ndarray
) -> np.ndarray:
    """Return which rows give their key another event time than it has.

    A key's time is the stored one; for a key that is not stored, that of its lowest sequence in the
    batch: the earliest of several, none last, so that order never matters. Deletes need no time.
    """
    names = list(dict.fromkeys([*spec.keys, event_time, *spec.sequence_by]))
    every = pa.concat_tables([stored.select(names), rows.select(names)]).combine_chunks()
    split = stored.num_rows
    codes = row_codes([every.column(name) for name in spec.keys], len(every))
    times = row_codes([every.column(event_time)], len(every))
    order = list(dict.fromkeys([*spec.sequence_by, event_time]))
    is_row = np.concatenate([np.ones(split, bool), ~is_delete])
    by_sequence = pc.sort_indices(
        every.select(order), sort_keys=[(name, "ascending") for name in order]
    ).to_numpy()
    stored_first = np.concatenate(
        [by_sequence[by_sequence < split], by_sequence[by_sequence >= split]]
    )
    ordered = stored_first[is_row[stored_first]]
    _, first = np.unique(codes[ordered], return_index=True)
    reference = np.full(int(codes.max(initial=0)) + 1, -2, dtype=np.int64)
    reference[codes[ordered[first]]] = times[ordered[first]]
    moved: np.ndarray = (times != reference[codes])[split:] & ~is_delete
    return moved


def _moved_letters(
    source: SourceTable, rows: pa.Table, moved: np.ndarray, stamp: Stamp
) -> pa.Table:
    chosen = rows.filter(pa.array(moved))
    landing = [field.name for field in LANDING_FIELDS]
    texts = [canonical_text(row) for row in chosen.drop_columns(landing).to_pylist()]
    count = chosen.num_rows
    detail = MOVED_DETAIL.format(source.event_time)
    return pa.table(
        [
            pa.array([source.relation] * count, pa.string()),
            chosen.column(ORIGIN),
            pa.array(["EVENT_TIME_MOVED"] * count, pa.string()),
            pa.array([detail] * count, pa.string()),
            pa.array(texts, pa.string()),
            pa.array([len(text.encode()) for text in texts], pa.int64()),
            pa.array([stamp.batch_id] * count, pa.int64()),
            pa.array([stamp.landed_at] * count, TIMESTAMP),
        ],
        schema=dead_letters.SCHEMA,
    )


def _stamped(rows: pa.Table, stamp: Stamp, schema: pa.Schema) -> pa.Table:
    """Return good records as rows of the landed table."""
    count = rows.num_rows
    known = {
        LANDED_AT: pa.array([stamp.landed_at] * count, TIMESTAMP),
        BATCH_ID: pa.array([stamp.batch_id] * count, pa.int64()),
    }
    columns = [
        known[field.name] if field.name in known else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema).combine_chunks()


def _as_removed(rows: pa.Table) -> pa.Table:
    zeros = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    return rows.append_column(OLD_COUNT, ones).append_column(NEW_COUNT, zeros)


def _spec(source: SourceTable) -> StreamSpec:
    assert source.stream is not None, source.unique_id
    return source.stream
