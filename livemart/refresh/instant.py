"""The one "now" of a snapshot: decided once per batch, kept in its replay, never moved back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from livemart.errors import ConfigError
from livemart.project.graph import SourceTable
from livemart.refresh.clock import as_of_for, read_clock, set_clock
from livemart.refresh.context import BatchContext
from livemart.settings import Settings
from livemart.state.snapshots import Snapshot

# The clock of a history in which nothing has happened yet.
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


def fix_as_of(
    context: BatchContext,
    clock: SourceTable,
    newest: Snapshot | None,
    *,
    newest_event_time: datetime | None,
    now: Callable[[], datetime],
) -> tuple[datetime, int]:
    """Return this batch's `as_of` and the version of the clock table that holds it.

    The table is written only if `as_of` moves. A replay finds what the first attempt wrote.

    Raises:
        ConfigError: AS_OF_BACKWARDS, if `--as-of` lies before the newest snapshot's.
    """
    warehouse, relation = context.warehouse, clock.relation
    known = newest.sources.get(relation) if newest else None
    before = newest.as_of if newest else None
    if warehouse.exists(relation):
        version = warehouse.version(relation)
        own = context.tag(relation, 0)
        if warehouse.is_tagged(relation, own):
            return read_clock(warehouse, version, relation=relation), version
        if known == version and before is not None:
            wanted = _wanted(context.settings, before, newest_event_time, now)
            if wanted == before:
                return before, version
    wanted = _wanted(context.settings, before, newest_event_time, now)
    version = set_clock(warehouse, wanted, context.tag(relation, 0), relation=relation)
    return read_clock(warehouse, version, relation=relation), version


def _wanted(
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
        as_of = before or _BEFORE_ALL
    return max(as_of, before) if before is not None else as_of
