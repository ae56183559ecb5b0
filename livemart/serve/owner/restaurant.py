"""The bodies about one restaurant at one snapshot, as bytes: made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from livemart.serve.owner import bodies
from livemart.serve.owner.facts import Facts
from livemart.serve.owner.late_orders import LateOrders
from livemart.serve.owner.panes import Panes

Kind = Literal["metrics", "top-dishes", "trend", "state"]
# What only some bodies are made of.
Part = Literal["panes", "late"]
PARTS: Mapping[Kind, frozenset[Part]] = {
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
    _encoded: dict[tuple[Kind, int], bytes] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that were read."""
        found: dict[Part, object] = {"panes": self.panes, "late": self.late}
        return frozenset(part for part, value in found.items() if value is not None)

    def get(self, kind: Kind, hours: int) -> bytes:
        """Return a body as JSON; that of `state` lacks the server's time.

        Raises:
            ValueError: what the body is made of was not read.
            ProblemError: WINDOW_UNKNOWN.
        """
        found = self._encoded.get((kind, hours))
        if found is None:
            found = self._encoded[(kind, hours)] = _MAKERS[kind](self, hours).encode()
        return found

    def has(self, hours: int) -> bool:
        """Return True if the project has figures of this window."""
        return hours in self.facts.metrics

    def require(self, hours: int) -> None:
        """Refuse a window that the project has no figures of.

        Raises:
            ProblemError: WINDOW_UNKNOWN.
        """
        self.facts.of_window(hours)


def _state_of(known: RestaurantBodies, hours: int) -> str:
    if known.late is None:
        raise ValueError(f"{known.facts.restaurant_id}: its late orders were not read")
    return bodies.write_json(bodies.state_of(known.facts, known.late, hours))


def _trend_of(known: RestaurantBodies, hours: int) -> str:
    if known.panes is None:
        raise ValueError(f"{known.facts.restaurant_id}: its panes were not read")
    return bodies.trend_json(known.facts, known.panes, hours)


_MAKERS: Mapping[Kind, Callable[[RestaurantBodies, int], str]] = {
    "metrics": lambda known, hours: bodies.write_json(bodies.metrics_of(known.facts, hours)),
    "top-dishes": lambda known, hours: bodies.write_json(bodies.top_dishes_of(known.facts, hours)),
    "trend": _trend_of,
    "state": _state_of,
}


def to_json(body: object) -> bytes:
    """Return JSON without spaces, in UTF-8."""
    return bodies.write_json(body).encode()


def with_times(body: bytes, now: datetime, checked_at: datetime | None) -> bytes:
    """Return the JSON object `body` with what is never kept of it as its first members.

    Args:
        body: of a snapshot.
        now: the server's clock.
        checked_at: when the snapshot was last known to be the newest.
    """
    return to_json(bodies.times_of(now, checked_at))[:-1] + b"," + body[1:]
