"""Compares the serving store with the snapshot log.

Used by `status` and `doctor`. Looking takes no lock and makes nothing; a store that is away is a
finding, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from livemart.errors import PublishError
from livemart.intervals import format_interval
from livemart.state.project_graph import SERVES_NOTHING
from livemart.state.snapshots import Snapshot
from livemart.store.served import Published

Standing = Literal["current", "behind", "empty", "foreign", "unreachable", "other_version"]

_PUBLISH = (
    "a running build, refresh or stream publishes it; if one is running, its log has "
    "`store_unreachable` or `publication_failed`"
)
_CHANGE = "change the models that are not served, or take them out of their exposures"
_STATES: dict[str, Standing] = {
    "STORE_EMPTY": "empty",
    "STORE_UNREACHABLE": "unreachable",
    "STORE_OF_ANOTHER_VERSION": "other_version",
}


@dataclass(frozen=True, slots=True)
class StoreStanding:
    """The snapshot that the store shows its readers, and how far behind it is."""

    place: str
    """Its URL without the password."""
    state: Standing
    snapshot_id: int | None
    """The snapshot that readers see; None if there is none or it is unknown."""
    behind_s: float | None
    """How long the newest published snapshot has waited for the store.

    None if it does not wait, or if that is unknown.
    """
    message: str
    hint: str | None = None
    """The next step, unless all is well."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why the store does not take the rows of a model and shows earlier ones, by model."""


def look_at_store(
    url: str, newest: Snapshot | None, now: datetime, *, is_served: bool = True
) -> StoreStanding:
    """Compare the store with the log.

    Args:
        newest: the newest published snapshot of the log; None if there is none.
        now: wall clock, UTC.
        is_served: false if the project has no model to serve; then no snapshot is awaited.
    """
    # An installation without the extra `serve` has no SQLAlchemy.
    from livemart.store.connections import open_engine, shown_url
    from livemart.store.reader import StoreReader

    engine = open_engine(url)
    place = shown_url(engine)
    try:
        with closing(StoreReader(engine)) as reader, reader.snapshot() as view:
            published = view.published
    except PublishError as error:
        state = _STATES[error.code]
        if state != "empty":
            message = f"{error.code}: {error.message}"
            return StoreStanding(place, state, None, None, message, error.hint)
        if newest is None:
            return StoreStanding(place, state, None, None, "empty, as is the log")
        standing = _behind(place, state, None, newest, now)
        return standing if is_served else _serves_nothing(standing)
    standing = _standing(place, published, newest, now)
    if standing.state == "behind" and not is_served:
        standing = _serves_nothing(standing)
    if not published.refused:
        return standing
    return replace(standing, refused=published.refused, hint=standing.hint or _CHANGE)


def _standing(
    place: str, published: Published, newest: Snapshot | None, now: datetime
) -> StoreStanding:
    snapshot_id = published.snapshot_id
    if newest and (published.epoch, snapshot_id) == (newest.epoch, newest.snapshot_id):
        return StoreStanding(
            place, "current", snapshot_id, None, f"at snapshot {snapshot_id}, the newest"
        )
    if newest is not None and snapshot_id < newest.snapshot_id:
        return _behind(place, "behind", snapshot_id, newest, now)
    log_state = "an empty log" if newest is None else f"a log at {newest.snapshot_id}"
    message = f"at snapshot {snapshot_id} beside {log_state}: it was filled from another warehouse"
    hint = (
        "the next build, refresh or stream fills it again; "
        "if it belongs to another project, name a different store"
    )
    return StoreStanding(place, "foreign", snapshot_id, None, message, hint)


def _behind(
    place: str,
    state: Standing,
    snapshot_id: int | None,
    newest: Snapshot,
    now: datetime,
) -> StoreStanding:
    waits = max(now - newest.finished_at, timedelta())
    message = (
        f"{_shown(snapshot_id)}; snapshot {newest.snapshot_id} has waited for "
        f"{format_interval(waits)}"
    )
    return StoreStanding(place, state, snapshot_id, waits.total_seconds(), message, _PUBLISH)


def _serves_nothing(standing: StoreStanding) -> StoreStanding:
    message = f"{_shown(standing.snapshot_id)}: {SERVES_NOTHING}"
    return replace(standing, behind_s=None, message=message, hint=None)


def _shown(snapshot_id: int | None) -> str:
    return "empty" if snapshot_id is None else f"at snapshot {snapshot_id}"
