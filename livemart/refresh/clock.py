"""The clock: the one "now" that every model of a snapshot reads, as a one-row table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from livemart.delta.small_lane import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError

CLOCK = "livemart.clock"
_SCHEMA = pa.schema([pa.field("as_of", pa.timestamp("us", tz="UTC"))])
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


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
    return _ZERO + ((moment - _ZERO) // pane + 1) * pane


def skipped_panes(pane: timedelta, before: datetime | None, as_of: datetime | None) -> int:
    """Return how many panes ended between two snapshots and have none of their own.

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
    marked = Tag(tag.app_id, tag.version, {**tag.metadata, "as_of": as_of.isoformat()})
    return warehouse.overwrite(relation, row, marked).version
