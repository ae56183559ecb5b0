"""Measures how late records come, of the sources that say `lateness: measured`.

Used once per batch, before the watermarks. The lateness of a record is the time from its event time
to the newest event time of the snapshot before it. A table counts records by day and by bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.project.graph import SourceTable
from livemart.refresh.context import BatchContext
from livemart.state.snapshots import Snapshot

_TABLE = "lateness"
# A record counts for the least of these seconds that covers its lateness; NULL stands for longer.
_BOUNDS_S = (
    *(0, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 259_200, 604_800, 1_209_600, 2_592_000),
)
_DAYS = 7
# The share of all records of these days. Fewer records than this decide nothing.
_COVERED = 0.999
_FEWEST = 1_000
# A backlog of days says nothing about how late records come, and its change would fill the memory.
_MOST = 1_000_000
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("day", pa.date32()),
        ("within_s", pa.int64()),
        ("records", pa.int64()),
    ]
)

_Counts = Counter[tuple[str, date, int | None]]


def measure_lateness(
    context: BatchContext,
    schema: str,
    sources: Sequence[SourceTable],
    versions: Mapping[str, int],
    newest: Snapshot | None,
) -> Mapping[str, timedelta | None]:
    """Count the records of a batch, and return the lateness of each source by its watermark.

    It is the least bound that 99.9 % of the records of seven days keep; a day is that of the newest
    event time. None while fewer than 1,000 are counted, or if no bound up to 30 days covers that
    share. A replay finds the counts of the first attempt.

    Args:
        context: identity of the micro-batch.
        schema: of the table `lateness`: source, day (of the newest event time), within_s (bound;
            NULL for later than all), records; key: the first three.
        sources: those whose lateness is measured.
        versions: of the landed tables in this batch.
        newest: the snapshot before, None before the first.
    """
    if not sources:
        return {}
    warehouse, relation = context.warehouse, f"{schema}.{_TABLE}"
    tag, counts = context.tags.rows(relation), _Counts()
    if warehouse.exists(relation):
        for row in warehouse.read(relation).to_pylist():
            counts[row["source"], row["day"], row["within_s"]] = row["records"]
    if newest is not None and not (
        warehouse.exists(relation) and warehouse.is_tagged(relation, tag)
    ):
        before = dict(counts)
        for source in sources:
            counts += _counted(warehouse, source, versions, newest)
            counts = _of_last_days(counts, source.watermark)
        if counts != before:
            rows = [
                dict(zip(_SCHEMA.names, (*key, count), strict=True))
                for key, count in sorted(counts.items(), key=str)
            ]
            warehouse.overwrite(relation, pa.Table.from_pylist(rows, schema=_SCHEMA), tag)
    return {source.watermark: _covering(counts, source.watermark) for source in sources}


def instant_of(moment: date) -> datetime:
    """Return the first instant of a day, or a time; a time without a zone is in UTC."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _counted(
    warehouse: Warehouse, source: SourceTable, versions: Mapping[str, int], newest: Snapshot
) -> _Counts:
    """Return how many new rows of a batch came within each bound."""
    relation, column = source.relation, source.event_time
    assert column is not None
    start, end = newest.sources.get(relation), versions.get(relation)
    if start is None or end is None or start >= end:
        return _Counts()
    reached = warehouse.newest(relation, column, start)
    growth = warehouse.row_count(relation, end) - warehouse.row_count(relation, start)
    if reached is None or growth > _MOST:
        return _Counts()
    try:
        change = warehouse.changes(relation, start, end)
    # Its columns changed in between; the next batch is counted again.
    except RefreshError:
        return _Counts()
    mark = instant_of(reached)
    if newest.as_of is not None:
        # A time in the future says nothing about the others.
        mark = min(mark, newest.as_of)
    rows = change.filter(pc.and_(pc.greater(change[WEIGHT], 0), pc.is_valid(change[column])))
    moments = rows[column].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    late_s = (mark.timestamp() * 1e6 - moments) / 1e6
    places = np.searchsorted(_BOUNDS_S, late_s, side="left")
    counts = np.bincount(places, rows[WEIGHT].to_numpy(), minlength=len(_BOUNDS_S) + 1)
    return Counter(
        {
            (source.watermark, mark.date(), bound): int(count)
            for bound, count in zip((*_BOUNDS_S, None), counts, strict=True)
            if count
        }
    )


def _of_last_days(counts: _Counts, source: str) -> _Counts:
    last = max((day for name, day, _ in counts if name == source), default=date.min)
    return Counter(
        {
            key: count
            for key, count in counts.items()
            if key[0] != source or last - key[1] < timedelta(days=_DAYS)
        }
    )


def _covering(counts: _Counts, source: str) -> timedelta | None:
    by_bound = Counter[int | None]()
    for (name, _, bound), count in counts.items():
        if name == source:
            by_bound[bound] += count
    total, covered = by_bound.total(), 0
    if total >= _FEWEST:
        for bound in _BOUNDS_S:
            covered += by_bound[bound]
            if covered >= total * _COVERED:
                return timedelta(seconds=bound)
    return None
