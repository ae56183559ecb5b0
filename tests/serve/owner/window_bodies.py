"""The bodies of one restaurant and window, read at once from a snapshot; None if it is unknown."""

from __future__ import annotations

from datetime import datetime

from livemart.serve.live.snapshot_json import Body, times_of
from livemart.serve.owner.bodies import metrics_of, read_trend, read_window, top_dishes_of
from livemart.serve.owner.facts import Facts, read_facts
from livemart.store.snapshot_view import SnapshotView


def metrics_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    facts = _facts(view, restaurant_id)
    return None if facts is None else metrics_of(facts, hours)


def top_dishes_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    facts = _facts(view, restaurant_id)
    return None if facts is None else top_dishes_of(facts, hours)


def trend_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    facts = _facts(view, restaurant_id)
    return None if facts is None else read_trend(view, facts, hours)


def state_body(
    view: SnapshotView, restaurant_id: str, hours: int, *, server_time: datetime
) -> Body | None:
    facts = _facts(view, restaurant_id)
    if facts is None:
        return None
    times = times_of(server_time, facts.published.checked_at)
    return {**read_window(view, facts, hours), **times}


def _facts(view: SnapshotView, restaurant_id: str) -> Facts | None:
    return read_facts(view, (restaurant_id,)).get(restaurant_id)
