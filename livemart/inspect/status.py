"""Reads the state of a warehouse from the log, the checkpoint and the landed tables.

Used by the command `status`. Reading starts no Spark and takes no lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from operator import itemgetter

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError
from livemart.inspect.orphans import Orphan, find_orphans
from livemart.inspect.run_lines import describe_run
from livemart.inspect.store_standing import StoreStanding, look_at_store
from livemart.inspect.terminal_text import aligned, counted
from livemart.intervals import format_interval, is_late
from livemart.land.lag import SourceLag, source_lags
from livemart.land.sources.files.unread import UnreadFiles, unread_files
from livemart.project.graph import names_apart
from livemart.project.landing_columns import LANDED_AT
from livemart.refresh.clock import skipped_panes
from livemart.state.counts import Counts
from livemart.state.drift import Drift, DriftKind, by_kind, describe_drift, merge_drift
from livemart.state.kept_snapshots import kept_snapshots
from livemart.state.last_pass import last_pass_at
from livemart.state.last_run import LastRun, read_last_run
from livemart.state.project_graph import serves_nothing
from livemart.state.refusals import ProjectRefusal, read_refusal
from livemart.state.snapshots import RELEASE, Snapshot, SnapshotLog, how_to_show_rows
from livemart.storage.location import StoragePlace

_COUNTS = ("produced", "landed", "superseded", "dead_letters")
# File statistics tell times in milliseconds, an upper bound at most so much above the row.
_COARSE = timedelta(milliseconds=2)


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One landed table: newest landing, counts of the listed snapshots, waiting records."""

    relation: str
    landed_at: datetime | None
    freshness_s: float | None
    rows: int | None
    produced: int
    landed: int
    superseded: int
    dead_letters: int
    waiting_files: int | None = 0
    """None if unknown, as for each count of waiting records."""
    waiting_bytes: int | None = 0
    waiting_s: float = 0.0
    waiting_records: int | None = None
    waiting_partitions: Mapping[str, int] = field(default_factory=dict)
    """For a record log: the number of waiting records in each partition."""
    look_age_s: float | None = None
    """The seconds since the log last answered."""
    away: str = ""
    """Why the source cannot be looked at; empty if it can."""
    away_s: float | None = None
    """How long it has been away."""


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """One row of the log, in brief."""

    snapshot_id: int
    kind: str
    status: str
    as_of: datetime | None
    finished_at: datetime
    took_s: float
    lag_s: float | None
    """From the delivery of the first record that it shows to its publication."""
    rows_changed: int
    rebuilt: tuple[str, ...]
    filled: tuple[str, ...]
    """Tables that hooks had written into, taken over unchanged."""
    skipped_panes: int
    """Panes since the row before that have no snapshot."""
    landed: Mapping[str, Counts]
    """Its counts by source."""


@dataclass(frozen=True, slots=True)
class AsideStatus:
    """A model that the newest snapshot leaves unchanged; `age_s` is None if it never had rows."""

    model: str
    cause: str
    since_snapshot: int
    refreshed_at: datetime | None
    age_s: float | None
    message: str


@dataclass(frozen=True, slots=True)
class WarehouseStatus:
    """The state of a warehouse at a moment."""

    at: datetime
    is_stale: bool
    staleness_s: float | None
    """The age of the newest published snapshot."""
    checked_s: float | None
    """The age of the last pass that found it to be the newest."""
    held_by: tuple[str, ...]
    """The failing tests of the newest snapshot."""
    warned_by: tuple[str, ...]
    sources: tuple[SourceStatus, ...]
    snapshots: tuple[SnapshotStatus, ...]
    store: StoreStanding | None = None
    """None if nothing is served."""
    set_aside: tuple[AsideStatus, ...] = ()
    strategy_failures: Mapping[str, int] = field(default_factory=dict)
    """The number of listed snapshots in which a strategy failed, by model."""
    refused_edit: ProjectRefusal | None = None
    """Why the project runs without its newest edit."""
    orphans: tuple[Orphan, ...] = ()
    """Tables of renamed and deleted models."""
    drift: Mapping[str, Drift] = field(default_factory=dict)
    """By relation: how records of the listed snapshots differ from the declared columns."""
    unread: tuple[UnreadFiles, ...] = ()
    """Delivered files that no source reads."""
    last_run: LastRun | None = None
    """The progress of the newest run; None if unknown."""
    kept_snapshots: Mapping[int, datetime] = field(default_factory=dict)
    """Until when readers keep snapshots, by number."""


def read_status(
    warehouse_root: StoragePlace,
    *,
    every: timedelta,
    pane: timedelta,
    landing: StoragePlace | None = None,
    store_url: str | None = None,
    now: datetime | None = None,
    limit: int = 10,
) -> WarehouseStatus:
    """Return the status of a warehouse.

    Args:
        every: the interval; what was published or found to be the newest three of them ago or
            longer is stale.
        pane: what `as_of` moves by.
        landing: the landing folder; None leaves out what waits there.
        store_url: of the serving store; None if nothing is served.
        now: wall clock, UTC.
        limit: how many snapshots to look back.
    """
    now = now or datetime.now(UTC)
    warehouse = Warehouse(warehouse_root)
    log = SnapshotLog(warehouse_root)
    # One more than asked for: each is compared with the one before.
    snapshots = sorted(log.rows(limit + 1), key=lambda row: row.snapshot_id, reverse=True)
    rows = snapshots[:limit]
    newest = rows[0] if rows else None
    published = log.newest_published()
    checked_s = _checked_s(published, newest, warehouse_root, now)
    tests = newest.tests if newest else {}
    return WarehouseStatus(
        at=now,
        is_stale=checked_s is None or is_late(timedelta(seconds=checked_s), every),
        staleness_s=(now - published.finished_at).total_seconds() if published else None,
        checked_s=checked_s,
        held_by=tuple(sorted(name for name, word in tests.items() if word in ("fail", "error"))),
        warned_by=tuple(sorted(name for name, word in tests.items() if word == "warn")),
        sources=_sources(warehouse, rows, now, _lags(warehouse_root, landing)),
        snapshots=tuple(
            _brief(row, snapshots[number + 1 :], pane) for number, row in enumerate(rows)
        ),
        store=None
        if store_url is None
        else look_at_store(store_url, published, now, is_served=not serves_nothing(warehouse_root)),
        set_aside=() if newest is None else _set_aside(newest, now),
        # No Counter: `asdict` would count its items.
        strategy_failures=dict(
            Counter(
                unique_id
                for row in rows
                for unique_id, state in row.models.items()
                if state.reason == "STRATEGY_FAILED"
            )
        ),
        refused_edit=read_refusal(warehouse_root),
        orphans=find_orphans(warehouse, log),
        drift=_drift(rows),
        unread=() if landing is None else unread_files(warehouse_root, landing),
        last_run=read_last_run(warehouse_root),
        kept_snapshots=kept_snapshots(warehouse_root, now),
    )


def render_status(status: WarehouseStatus) -> str:
    """Return the status as lines for a terminal."""
    run_lines = describe_run(status.last_run, status.at)
    state_lines = [*run_lines, *_store_lines(status), *_away_lines(status)]
    state_lines += map(str, status.unread)
    if not status.snapshots:
        is_running = status.last_run is not None and status.last_run.ending is None
        next_step = () if is_running else ("  next: run `build`",)
        return "\n".join(["no snapshot yet", *state_lines, *next_step])
    lines = [_age_line(status), *state_lines]
    if (edit := status.refused_edit) is not None:
        lines.append(
            f"edit of {edit.at} refused, the previous project keeps running: {edit.message}"
        )
    lines += _held_lines(status)
    lines += [f"warned by {name}" for name in status.warned_by]
    for aside in status.set_aside:
        age = "never computed" if aside.age_s is None else f"{_age(aside.age_s)} old"
        why = aside.message if aside.cause == aside.model else f"waits for {aside.cause}"
        lines.append(f"set aside {aside.model} since snapshot {aside.since_snapshot}, {age}: {why}")
    for name, count in status.strategy_failures.items():
        lines.append(f"STRATEGY_FAILED {name}: recomputed in full, {count} of these snapshots")
    if status.strategy_failures:
        lines.append("  next: please report it, with the traceback of strategy_failed in the log")
    lines += [f"orphan {orphan.relation}: {orphan.model} was removed" for orphan in status.orphans]
    if status.orphans:
        lines.append(
            "  next: no model fills these tables any more; drop them if they are not needed"
        )
    for snapshot_id, until in status.kept_snapshots.items():
        lines.append(f"snapshot {snapshot_id} is kept until {until:%Y-%m-%d %H:%M:%S}")
    for relation, drift in status.drift.items():
        for kind, fields in by_kind(drift):
            lines += [describe_drift(relation, kind, fields), f"  next: {kind.next_step}"]
    header = (
        "source",
        "freshness",
        "rows",
        *(word.replace("_", " ") for word in _COUNTS),
        "waiting",
    )
    table = [
        (
            source.relation,
            "-"
            if source.freshness_s is None
            else format_interval(timedelta(seconds=source.freshness_s)),
            "-" if source.rows is None else f"{source.rows:,}",
            *(f"{getattr(source, word):,}" for word in _COUNTS),
            _waiting(source),
        )
        for source in status.sources
    ]
    if table:
        count = len(status.snapshots)
        named = "the last snapshot" if count == 1 else f"the last {count} snapshots"
        lines += ["", f"landed tables, with the records of {named}"]
        lines += aligned([header, *table])
    header = (
        "snapshot",
        "kind",
        "status",
        "as of",
        "finished",
        "took",
        "lag",
        "skipped panes",
        "rows changed",
    )
    rows = [
        (
            str(row.snapshot_id),
            row.kind,
            row.status,
            "-" if row.as_of is None else f"{row.as_of:%Y-%m-%d %H:%M:%S}",
            f"{row.finished_at:%Y-%m-%d %H:%M:%S}",
            f"{row.took_s:.1f} s",
            "-" if row.lag_s is None else f"{row.lag_s:.1f} s",
            str(row.skipped_panes),
            f"{row.rows_changed:,}"
            + (f" (rebuilt {', '.join(row.rebuilt)})" if row.rebuilt else "")
            + (f" (filled by hooks: {', '.join(row.filled)})" if row.filled else ""),
        )
        for row in status.snapshots
    ]
    return "\n".join([*lines, "", *aligned([header, *rows])])


def _held_lines(status: WarehouseStatus) -> list[str]:
    run = status.last_run
    newest = None if run is None else run.newest
    is_of_newest = newest is not None and newest.snapshot_id == status.snapshots[0].snapshot_id
    standings = newest.tests if newest is not None and is_of_newest else {}
    lines = []
    for name in status.held_by:
        standing = standings.get(name)
        count = "" if standing is None or standing.rows is None else f": {standing.rows:,} rows"
        place = "" if standing is None or not standing.place else f" ({standing.place})"
        lines += [f"held by {name}{count}{place}", how_to_show_rows(name)]
    return [*lines, RELEASE] if lines else []


def _waiting(source: SourceStatus) -> str:
    words = []
    if source.waiting_files:
        words.append(counted(source.waiting_files, "file"))
    if source.waiting_bytes:
        words.append(f"{source.waiting_bytes / 1e6:,.1f} MB")
    if source.waiting_records:
        about = "about " if source.waiting_files else ""
        words.append(about + counted(source.waiting_records, "record"))
    partition, most = max(source.waiting_partitions.items(), key=itemgetter(1), default=("", 0))
    if most:
        words[-1] += f" ({partition}: {most:,})"
    if words:
        words.append(_age(source.waiting_s))
    if source.look_age_s is not None:
        words.append(f"seen {_age(source.look_age_s)} ago")
    return ", ".join(words) or "-"


def _away_lines(status: WarehouseStatus) -> list[str]:
    lines = []
    for source in status.sources:
        if source.away:
            age = "" if source.away_s is None else f" for {_age(source.away_s)}"
            lines.append(f"away {source.relation}{age}: {source.away}")
    if lines:
        lines.append("  next: nothing of it lands until it is back; a stream waits for it")
    return lines


def _age(seconds: float) -> str:
    return format_interval(timedelta(seconds=round(seconds)))


def _checked_s(
    published: Snapshot | None, newest: Snapshot | None, warehouse: StoragePlace, now: datetime
) -> float | None:
    """Return how long ago readers were last known to see the newest; None if they see nothing.

    A pass without news leaves no snapshot, only its mark in the checkpoint.
    """
    if published is None:
        return None
    times = [published.finished_at]
    if published == newest and (passed_at := last_pass_at(warehouse)) is not None:
        times.append(passed_at)
    return (now - max(times)).total_seconds()


def _age_line(status: WarehouseStatus) -> str:
    if status.staleness_s is None or status.checked_s is None:
        return "nothing published yet"
    line = f"published {format_interval(timedelta(seconds=status.staleness_s))} ago"
    if status.checked_s < status.staleness_s:
        line += f", nothing new {format_interval(timedelta(seconds=status.checked_s))} ago"
    return f"{line}, stale" if status.is_stale else line


def _store_lines(status: WarehouseStatus) -> list[str]:
    if status.store is None:
        return []
    lines = [f"store {status.store.place}: {status.store.message}"]
    refused = status.store.refused
    lines += [f"  {name} is not served: {why}" for name, why in sorted(refused.items())]
    if status.store.hint:
        lines.append(f"  next: {status.store.hint}")
    return lines


def _lags(warehouse: StoragePlace, landing: StoragePlace | None) -> Mapping[str, SourceLag]:
    try:
        return source_lags(warehouse, landing)
    except (LivemartError, OSError):
        # The doctor speaks of a checkpoint that cannot be read.
        return {}


def _sources(
    warehouse: Warehouse, rows: list[Snapshot], now: datetime, lags: Mapping[str, SourceLag]
) -> tuple[SourceStatus, ...]:
    landed = {relation for row in rows for relation in row.landed}
    # One that is away may never have landed anything.
    away = {relation for relation, lag in lags.items() if lag.away}
    return tuple(
        _source(warehouse, relation, rows, now, lags.get(relation, SourceLag()))
        for relation in sorted(landed | away)
    )


def _source(
    warehouse: Warehouse, relation: str, rows: list[Snapshot], now: datetime, lag: SourceLag
) -> SourceStatus:
    landed_at: datetime | None = None
    count: int | None = None
    version = rows[0].sources.get(relation) if rows else None
    try:
        count = warehouse.row_count(relation, version)
        landed_at = warehouse.newest(relation, LANDED_AT, version)
    except (LivemartError, KeyError, ValueError):
        # The doctor and the next refresh speak of a table that is gone.
        pass
    sums = {
        word: sum(getattr(row.landed[relation], word) for row in rows if relation in row.landed)
        for word in _COUNTS
    }
    freshness = (now - landed_at).total_seconds() if landed_at else None
    return SourceStatus(
        relation,
        landed_at,
        freshness,
        count,
        **sums,
        waiting_files=lag.files,
        waiting_bytes=lag.size,
        waiting_s=lag.waits_s(now),
        waiting_records=lag.records,
        waiting_partitions=lag.partitions,
        look_age_s=lag.look_age_s(now),
        away=lag.away,
        away_s=None if lag.away_since is None else (now - lag.away_since).total_seconds(),
    )


def _drift(rows: Sequence[Snapshot]) -> Mapping[str, Drift]:
    """Return the drift that some snapshots saw, newest first; columns may be declared by now."""
    return merge_drift(
        {
            relation: tuple(
                field for field in drift if number == 0 or field.kind is not DriftKind.UNDECLARED
            )
            for relation, drift in row.drift.items()
        }
        for number, row in enumerate(rows)
    )


def _set_aside(newest: Snapshot, now: datetime) -> tuple[AsideStatus, ...]:
    return tuple(
        AsideStatus(
            unique_id,
            aside.cause,
            aside.since,
            aside.refreshed_at,
            None if aside.refreshed_at is None else (now - aside.refreshed_at).total_seconds(),
            aside.message,
        )
        for unique_id, aside in sorted(newest.set_aside.items())
    )


def _lag_s(row: Snapshot, earlier: Sequence[Snapshot]) -> float | None:
    """Return how long the first of its records waited for readers to see it, from its delivery.

    A held snapshot shows nothing yet: its records wait for the next one that is published. A build
    says nothing of how fresh a stream is.
    """
    if row.status == "held" or row.kind != "refresh":
        return None
    held = takewhile(lambda before: before.status == "held", earlier)
    times = [
        snapshot.delivered_at for snapshot in (row, *held) if snapshot.delivered_at is not None
    ]
    return (row.finished_at - min(times)).total_seconds() if times else None


def _brief(row: Snapshot, earlier: Sequence[Snapshot], pane: timedelta) -> SnapshotStatus:
    """Return a row in brief; `earlier` are those before it, newest first."""
    before = earlier[0] if earlier else None
    as_of_before = before.as_of if before is not None and row.kind == "refresh" else None
    names = names_apart(row.stored)
    return SnapshotStatus(
        snapshot_id=row.snapshot_id,
        kind=row.kind,
        status=row.status,
        as_of=row.as_of,
        finished_at=row.finished_at,
        took_s=(row.finished_at - row.started_at).total_seconds(),
        lag_s=_lag_s(row, earlier),
        rows_changed=sum(state.rows_changed for state in row.models.values()),
        rebuilt=tuple(
            f"{names[unique_id]}: {state.reason}"
            for unique_id, state in row.stored.items()
            if row.kind == "refresh"
            and state.strategy == "full"
            and state.reason not in (None, "FILLED_BY_HOOKS")
        ),
        filled=tuple(
            names[unique_id]
            for unique_id, state in row.models.items()
            if state.reason == "FILLED_BY_HOOKS"
        ),
        skipped_panes=skipped_panes(pane, as_of_before, row.as_of),
        landed={
            relation: Counts(*(getattr(counts, word) for word in _COUNTS))
            for relation, counts in sorted(row.landed.items())
        },
    )
