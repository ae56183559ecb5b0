"""Makes the bodies about one restaurant at one snapshot, as bytes, when they are first asked for.

Used by pull and push queries, through `Answers`, and by the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from livemart.serve.live.shelf import Answer
from livemart.serve.live.snapshot_json import json_text
from livemart.serve.owner import bodies
from livemart.serve.owner.facts import Facts, end_of, has_owner_models, read_facts
from livemart.serve.owner.late_orders import LateOrders, read_late_orders
from livemart.serve.owner.panes import LONGEST, Panes, follow_panes, read_panes
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView

BodyKind = Literal["metrics", "top-dishes", "trend", "state"]
# Parts that only some bodies need.
BodyPart = Literal["panes", "late"]
PARTS: Mapping[BodyKind, frozenset[BodyPart]] = {
    "metrics": frozenset(),
    "top-dishes": frozenset(),
    "trend": frozenset({"panes"}),
    "state": frozenset({"late"}),
}
PAGE_PARTS: frozenset[BodyPart] = PARTS["trend"] | PARTS["state"]


@dataclass(slots=True)
class RestaurantBodies:
    """The bodies of one restaurant at one snapshot.

    `panes`: two weeks of them, once a trend was asked for; `late`: once a state was.
    """

    facts: Facts
    panes: Panes | None = None
    late: LateOrders | None = None
    _encoded: dict[tuple[BodyKind, int], bytes] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[BodyPart]:
        """The parts that were read."""
        values: dict[BodyPart, object] = {"panes": self.panes, "late": self.late}
        return frozenset(part for part, value in values.items() if value is not None)

    def get(self, kind: BodyKind, hours: int) -> bytes:
        """Return a body as JSON; that of `state` lacks the server's time.

        Raises:
            ValueError: a part that the body needs was not read.
            ProblemError: WINDOW_UNKNOWN.
        """
        body = self._encoded.get((kind, hours))
        if body is None:
            body = self._encoded[(kind, hours)] = _MAKERS[kind](self, hours).encode()
        return body

    def has(self, hours: int) -> bool:
        """Return True if the project has figures of this window."""
        return hours in self.facts.metrics


def read_restaurants(
    view: SnapshotView,
    parts: Mapping[str, frozenset[BodyPart]],
    earlier: Mapping[str, Answer[Panes]] | None = None,
) -> dict[str, RestaurantBodies]:
    """Return the restaurants that the store knows, by id, of those that `parts` names.

    Args:
        view: one snapshot.
        parts: what to read of each restaurant.
        earlier: panes of earlier snapshots by restaurant, which are kept current.
    """
    panes = _read_panes(view, earlier or {}, [name for name in parts if "panes" in parts[name]])
    by_name = read_facts(view, parts)
    names = [name for name in by_name if "late" in parts[name]]
    corrected = read_late_orders(view, names, end_of(view.published))
    return {
        name: RestaurantBodies(facts, panes.get(name), corrected.get(name))
        for name, facts in by_name.items()
    }


def _read_panes(
    view: SnapshotView, earlier: Mapping[str, Answer[Panes]], names: Collection[str]
) -> dict[str, Panes]:
    """Return panes as `view` has them: of restaurants where they are known, and of `names`."""
    if not has_owner_models(view):
        return {}
    end = end_of(view.published)
    by_snapshot: defaultdict[Published, dict[str, Panes]] = defaultdict(dict)
    for name, answer in earlier.items():
        by_snapshot[answer.published][name] = answer.value
    current: dict[str, Panes] = {}
    for before, panes in by_snapshot.items():
        current |= follow_panes(view, before, panes, end)
    rest = [name for name in names if name not in current]
    return current | (read_panes(view, rest, end - LONGEST) if rest else {})


def _state_of(restaurant: RestaurantBodies, hours: int) -> str:
    if restaurant.late is None:
        raise ValueError(f"{restaurant.facts.restaurant_id}: its late orders were not read")
    return json_text(bodies.state_of(restaurant.facts, restaurant.late, hours))


def _trend_of(restaurant: RestaurantBodies, hours: int) -> str:
    if restaurant.panes is None:
        raise ValueError(f"{restaurant.facts.restaurant_id}: its panes were not read")
    return bodies.trend_json(restaurant.facts, restaurant.panes, hours)


_MAKERS: Mapping[BodyKind, Callable[[RestaurantBodies, int], str]] = {
    "metrics": lambda it, hours: json_text(bodies.metrics_of(it.facts, hours)),
    "top-dishes": lambda it, hours: json_text(bodies.top_dishes_of(it.facts, hours)),
    "trend": _trend_of,
    "state": _state_of,
}
