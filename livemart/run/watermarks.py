"""Keeps the watermarks: up to which event time each source counts as complete, in one row.

Used once per batch, after the clock is fixed and before the first model. A watermark is the newest
landed event time, less the lateness that the source declares or that was measured. It is never
later than the clock, and never goes back. It drops no record: windows behind it are final until a
later record corrects them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from livemart.delta.warehouse import Warehouse
from livemart.project.graph import OVERALL_WATERMARK, SourceTable
from livemart.refresh.context import BatchContext
from livemart.run.lateness import instant_of

_INSTANT = pa.timestamp("us", tz="UTC")
_FIRST = datetime.min.replace(tzinfo=UTC)


def fix_watermarks(
    context: BatchContext,
    relation: str,
    sources: Sequence[SourceTable],
    versions: Mapping[str, int],
    as_of: datetime | None,
    measured: Mapping[str, timedelta | None],
) -> int:
    """Return the version of the table that holds the watermarks of a batch.

    The table is written only if one moves. A replay finds what the first attempt wrote.

    Args:
        context: identity of the micro-batch.
        relation: the table: one row with `complete_to`, the least of all, and a column for each
            source (timestamp; NULL while nothing has landed).
        sources: those that declare a lateness.
        versions: of the landed tables in this batch.
        as_of: the clock, None in a project that reads none.
        measured: the lateness of the sources that do not declare theirs, by watermark.
    """
    warehouse, tag = context.warehouse, context.tags.rows(relation)
    before: Mapping[str, datetime | None] = {}
    if warehouse.exists(relation):
        if warehouse.is_tagged(relation, tag):
            return warehouse.version(relation)
        before = read_watermarks(warehouse, relation)
        missing = [pa.field(it.watermark, _INSTANT) for it in sources if it.watermark not in before]
        if missing:
            columns = context.tags.columns(relation)
            warehouse.add_columns(relation, missing, columns)
    watermarks = {
        source.watermark: _latest(
            before.get(source.watermark),
            _reached(warehouse, source, versions.get(source.relation), as_of, measured),
        )
        for source in sources
    }
    complete = [moment for moment in watermarks.values() if moment is not None]
    is_known = len(complete) == len(watermarks) > 0
    row = {
        **dict.fromkeys(before),
        OVERALL_WATERMARK: min(complete) if is_known else None,
        **watermarks,
    }
    if warehouse.exists(relation) and all(before.get(name) == row[name] for name in row):
        return warehouse.version(relation)
    schema = pa.schema([pa.field(name, _INSTANT) for name in row])
    return warehouse.overwrite(relation, pa.Table.from_pylist([row], schema=schema), tag).version


def read_watermarks(
    warehouse: Warehouse, relation: str, version: int | None = None
) -> Mapping[str, datetime | None]:
    """Return the watermarks of a version of the table, by default the newest, by column (UTC)."""
    (row,) = warehouse.read(relation, version).to_pylist()
    return {
        name: None if moment is None else moment.astimezone(UTC) for name, moment in row.items()
    }


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


def _reached(
    warehouse: Warehouse,
    source: SourceTable,
    version: int | None,
    as_of: datetime | None,
    measured: Mapping[str, timedelta | None],
) -> datetime | None:
    assert source.event_time is not None and source.row_rules.lateness is not None
    declared = source.row_rules.lateness
    lateness = declared if isinstance(declared, timedelta) else measured[source.watermark]
    if version is None or lateness is None:
        return None
    newest = warehouse.newest(source.relation, source.event_time, version)
    if newest is None:
        return None
    # The first moment of all is a default of some producers.
    reached = _FIRST + max(instant_of(newest) - _FIRST - lateness, timedelta())
    return reached if as_of is None else min(reached, as_of)
