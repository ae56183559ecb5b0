"""Keeps the clock: the one "now" that every model of a snapshot reads, as a one-row table.

Used once per batch, between landing and the first model. `as_of` is decided once, kept in a
replay of the batch, and never moved back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.epoch import EPOCH
from livemart.errors import ConfigError
from livemart.project.graph import SourceTable
from livemart.refresh.context import BatchContext
from livemart.settings import Settings
from livemart.state.snapshots import Snapshot

CLOCK = "livemart.clock"
_SCHEMA = pa.schema([pa.field("as_of", pa.timestamp("us", tz="UTC"))])


def as_of_for(pane: timedelta, moment: datetime) -> datetime:
    """Return the end of the pane that holds `moment`: its start plus one pane.

    Panes are counted from 1970-01-01 UTC. An instant on a boundary belongs to the pane it opens.

    Raises:
        ConfigError: PANE_NOT_POSITIVE.

    >>> as_of_for(timedelta(minutes=5), datetime(2026, 3, 1, 12, 5, tzinfo=UTC)).isoformat()
    '2026-03-01T12:10:00+00:00'
    """
    if pane <= timedelta(0):
        raise ConfigError(
            "PANE_NOT_POSITIVE",
            f"livemart.yml: pane: found {pane}",
            hint="give the pane a length above zero, such as 5 minutes",
        )
    return EPOCH + ((moment - EPOCH) // pane + 1) * pane


def skipped_panes(pane: timedelta, before: datetime | None, as_of: datetime | None) -> int:
    """Return how many panes ended between two snapshots and have no snapshot themselves.

    A refresh that takes longer than a pane goes on with the newest `as_of`; nothing is queued.

    >>> noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> skipped_panes(timedelta(minutes=5), noon, noon + timedelta(minutes=15))
    2
    """
    if before is None or as_of is None:
        return 0
    return max(0, (as_of - before) // pane - 1)


def read_clock(
    warehouse: Warehouse, version: int | None = None, *, relation: str = CLOCK
) -> datetime:
    """Return `as_of` of a version of the clock table, by default the newest."""
    at = warehouse.version(relation) if version is None else version
    as_of: datetime = warehouse.read(relation, at).column("as_of")[0].as_py()
    return as_of.astimezone(UTC)


def set_clock(warehouse: Warehouse, as_of: datetime, tag: Tag, *, relation: str = CLOCK) -> int:
    """Write `as_of` as the clock's only row, in one commit, and return the table's version.

    The clock never goes backwards: an earlier `as_of` leaves the table as it is. A replay of the
    batch that `tag` names changes nothing; `read_clock` then gives what the first attempt wrote,
    and the commit's metadata holds it as `as_of`.
    """
    if warehouse.exists(relation) and read_clock(warehouse, relation=relation) >= as_of:
        return warehouse.version(relation)
    row = pa.table([pa.array([as_of], _SCHEMA.field("as_of").type)], schema=_SCHEMA)
    return warehouse.overwrite(
        relation, row, tag.with_metadata({"as_of": as_of.isoformat()})
    ).version


def fix_as_of(
    context: BatchContext,
    settings: Settings,
    clock: SourceTable,
    newest: Snapshot | None,
    *,
    newest_event_time: datetime | None,
    now: Callable[[], datetime],
) -> tuple[datetime, int]:
    """Return this batch's `as_of` and the version of the clock table that holds it.

    The table is written only if `as_of` moves. A replay finds what the first attempt wrote.

    Raises:
        ConfigError: AS_OF_BACKWARDS, if `--as-of` is before the newest snapshot's.
    """
    warehouse, relation = context.warehouse, clock.relation
    clock_version = newest.sources.get(relation) if newest else None
    before = newest.as_of if newest else None
    if warehouse.exists(relation):
        version = warehouse.version(relation)
        tag = context.tags.rows(relation)
        if warehouse.is_tagged(relation, tag):
            return read_clock(warehouse, version, relation=relation), version
        if clock_version == version and before is not None:
            as_of = _next_as_of(settings, before, newest_event_time, now)
            if as_of == before:
                return before, version
    as_of = _next_as_of(settings, before, newest_event_time, now)
    version = set_clock(warehouse, as_of, context.tags.rows(relation), relation=relation)
    return read_clock(warehouse, version, relation=relation), version


def _next_as_of(
    settings: Settings,
    before: datetime | None,
    newest_event_time: datetime | None,
    now: Callable[[], datetime],
) -> datetime:
    if settings.as_of is not None:
        as_of = as_of_for(settings.pane, settings.as_of)
        if before is not None and as_of < before:
            raise ConfigError(
                "AS_OF_BACKWARDS",
                f"--as-of: found {settings.as_of:%Y-%m-%d %H:%M:%S}, the newest snapshot is as of "
                f"{before:%Y-%m-%d %H:%M:%S}",
                hint="give a later instant, or another --warehouse",
            )
        return as_of
    if settings.clock == "wall":
        as_of = as_of_for(settings.pane, now())
    elif newest_event_time is not None:
        as_of = as_of_for(settings.pane, newest_event_time)
    else:
        # The clock of a history in which nothing has happened yet.
        as_of = before or EPOCH
    return max(as_of, before) if before is not None else as_of
