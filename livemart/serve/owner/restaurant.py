"""Makes the bodies about one restaurant at one snapshot, as bytes, when they are first asked for.

Used by pull and push queries, through `Answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from livemart.serve.live.snapshot_json import json_text
from livemart.serve.owner import bodies
from livemart.serve.owner.facts import Facts
from livemart.serve.owner.late_orders import LateOrders
from livemart.serve.owner.panes import Panes

BodyKind = Literal["metrics", "top-dishes", "trend", "state"]
# What only some bodies are made of.
BodyPart = Literal["panes", "late"]
PARTS: Mapping[BodyKind, frozenset[BodyPart]] = {
    "metrics": frozenset(),
    "top-dishes": frozenset(),
    "trend": frozenset({"panes"}),
    "state": frozenset({"late"}),
}


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
            ValueError: what the body is made of was not read.
            OwnerProblemError: WINDOW_UNKNOWN.
        """
        body = self._encoded.get((kind, hours))
        if body is None:
            body = self._encoded[(kind, hours)] = _MAKERS[kind](self, hours).encode()
        return body

    def has(self, hours: int) -> bool:
        """Return True if the project has figures of this window."""
        return hours in self.facts.metrics


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
