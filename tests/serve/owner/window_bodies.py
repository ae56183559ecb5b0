"""The bodies of one restaurant and window, read at once from a snapshot; None if it is unknown."""

from __future__ import annotations

import json
from datetime import datetime

from livemart.serve.live.snapshot_json import Body, times_of
from livemart.serve.owner.answers import PARTS, BodyKind, read_restaurants
from livemart.store.snapshot_view import SnapshotView


def metrics_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    return _body(view, restaurant_id, "metrics", hours)


def top_dishes_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    return _body(view, restaurant_id, "top-dishes", hours)


def trend_body(view: SnapshotView, restaurant_id: str, hours: int) -> Body | None:
    return _body(view, restaurant_id, "trend", hours)


def state_body(
    view: SnapshotView, restaurant_id: str, hours: int, *, server_time: datetime
) -> Body | None:
    state = _body(view, restaurant_id, "state", hours)
    return None if state is None else {**state, **times_of(server_time, view.published.checked_at)}


def _body(view: SnapshotView, restaurant_id: str, kind: BodyKind, hours: int) -> Body | None:
    bodies = read_restaurants(view, {restaurant_id: PARTS[kind]}).get(restaurant_id)
    if bodies is None:
        return None
    body: Body = json.loads(bodies.get(kind, hours))
    return body
