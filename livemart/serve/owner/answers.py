"""Answers questions about restaurants: reads many at once, and ahead of being asked again.

Used by pull and push queries, and by the page. They decide who may see a restaurant before they
ask: nothing here knows a caller. A body is made when it is first asked for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from livemart.serve.live.hub import Hub, Topic
from livemart.serve.live.readings import Readings
from livemart.serve.live.shelf import Answer
from livemart.serve.live.snapshot_json import json_text
from livemart.serve.owner.bodies import metrics_of, state_of, top_dishes_of, trend_json
from livemart.serve.owner.facts import Facts, end_of, has_owner_models, read_facts
from livemart.serve.owner.late_orders import LateOrders, read_late_orders
from livemart.serve.owner.panes import LONGEST, Panes, follow_panes, read_panes
from livemart.serve.shares.round_robin import LINE, RoundRobin
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView

# Restaurants read in one query.
_TOGETHER = 20
# Restaurants that are read ahead of their being asked for again.
_MOST_RECENT = 300

BodyKind = Literal["metrics", "top-dishes", "trend", "state"]
# Parts that only some bodies need.
BodyPart = Literal["panes", "late"]
_NOTHING: frozenset[BodyPart] = frozenset()
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
    return json_text(state_of(restaurant.facts, restaurant.late, hours))


def _trend_of(restaurant: RestaurantBodies, hours: int) -> str:
    if restaurant.panes is None:
        raise ValueError(f"{restaurant.facts.restaurant_id}: its panes were not read")
    return trend_json(restaurant.facts, restaurant.panes, hours)


_MAKERS: Mapping[BodyKind, Callable[[RestaurantBodies, int], str]] = {
    "metrics": lambda it, hours: json_text(metrics_of(it.facts, hours)),
    "top-dishes": lambda it, hours: json_text(top_dishes_of(it.facts, hours)),
    "trend": _trend_of,
    "state": _state_of,
}


@dataclass(slots=True)
class _Request:
    """A restaurant that callers wait for, and the parts that the bodies they ask for need."""

    result: asyncio.Future[RestaurantBodies | None]
    parts: frozenset[BodyPart]


class Answers:
    """The bodies of restaurants.

    The hub has those of open streams read before it tells of a snapshot.
    """

    def __init__(self, readings: Readings, hub: Hub) -> None:
        self._readings = readings
        self._hub = hub
        self._recent: OrderedDict[str, None] = OrderedDict()
        # The panes of restaurants whose trend was asked for: the next snapshot changes a few.
        self._panes: dict[str, Answer[Panes]] = {}
        self._waiting: dict[str, _Request] = {}
        # Their names, in turns of those who asked first for each.
        self._turns = RoundRobin[str]()
        self._reading: asyncio.Task[None] | None = None
        # Restaurants are read by one thread at a time: more would keep the event loop waiting.
        self._turn = asyncio.Lock()
        hub.prepare = self.prepare

    async def restaurant(self, restaurant_id: str, kind: BodyKind) -> RestaurantBodies | None:
        """Return the bodies of a restaurant at the newest snapshot; None if it is unknown."""
        parts = PARTS[kind]
        while True:
            newest = await self._readings.newest()
            bodies = self._find(restaurant_id, newest)
            if bodies is None or not parts <= bodies.parts:
                bodies = await asyncio.shield(self._request(restaurant_id, parts))
                if bodies is None:
                    return None
            # A reading that was under way may be of a snapshot that is not the newest any more.
            is_old = newest.is_later_than(bodies.facts.published)
            if not is_old and parts <= bodies.parts:
                self._remember(restaurant_id, newest)
                return bodies

    async def prepare(self, topics: Iterable[Topic]) -> None:
        """Read the first answers of a new snapshot before the streams learn of it.

        That is the restaurants of open streams, and those that were asked for last.
        """
        published, states = self._hub.published, defaultdict[str, set[int]](set)
        for restaurant_id, hours in topics:
            states[restaurant_id].add(hours)
        names = sorted({*states, *self._recent})
        for start in range(0, len(names), _TOGETHER):
            async with self._turn:
                # A caller may have asked for it meanwhile.
                rest = [
                    name
                    for name in names[start : start + _TOGETHER]
                    if published is None
                    or (answer := self._readings.peek(_key(name), published)) is None
                    or not answer.published.is_later_than(published)
                ]
                if rest:
                    parts = {name: PARTS["state"] if name in states else _NOTHING for name in rest}
                    await self._read_restaurants(parts, states)

    def _find(self, name: str, newest: Published) -> RestaurantBodies | None:
        answer = self._readings.find(_key(name), newest)
        return None if answer is None else answer.value

    def _remember(self, restaurant_id: str, newest: Published) -> None:
        """Remember who was asked for last; panes take space, and the others' are forgotten."""
        self._recent[restaurant_id] = None
        self._recent.move_to_end(restaurant_id)
        if len(self._recent) > _MOST_RECENT:
            forgotten, _ = self._recent.popitem(last=False)
            self._panes.pop(forgotten, None)
            answer = self._readings.peek(_key(forgotten), newest)
            if answer is not None:
                answer.value.panes = None

    def _request(
        self, name: str, parts: frozenset[BodyPart]
    ) -> asyncio.Future[RestaurantBodies | None]:
        request = self._waiting.get(name)
        if request is None:
            result = asyncio.get_running_loop().create_future()
            request = self._waiting[name] = _Request(result, parts)
            self._turns.put(LINE.get(), name)
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_waiting())
        request.parts |= parts
        return request.result

    async def _read_waiting(self) -> None:
        """Read all that callers wait for by now in one query; later questions in the next."""
        while self._waiting:
            async with self._turn:
                names = list(islice(iter(self._turns.take, None), _TOGETHER))
                requests = {name: self._waiting.pop(name) for name in names}
                try:
                    bodies = await self._read_requested(requests)
                except Exception as error:
                    for request in requests.values():
                        request.result.set_exception(error)
                        # Those who still wait get it; asyncio need not log an untaken error.
                        request.result.exception()
                else:
                    for name, request in requests.items():
                        request.result.set_result(bodies.get(name))

    async def _read_requested(
        self, requests: Mapping[str, _Request]
    ) -> dict[str, RestaurantBodies]:
        newest = await self._readings.newest()
        bodies: dict[str, RestaurantBodies] = {}
        parts: dict[str, frozenset[BodyPart]] = {}
        for name, request in requests.items():
            # It may have been read ahead while this waited for its turn.
            before = self._find(name, newest)
            if before is not None and request.parts <= before.parts:
                bodies[name] = before
            else:
                # Its parts that were known before will be asked for again.
                parts[name] = request.parts | (before.parts if before else _NOTHING)
        if parts:
            answer = await self._read_restaurants(parts, {})
            # The store may be a snapshot further than the hub's last look.
            self._hub.note_newer(answer.published)
            bodies |= answer.value
        return bodies

    async def _read_restaurants(
        self, parts: Mapping[str, frozenset[BodyPart]], states: Mapping[str, Iterable[int]]
    ) -> Answer[dict[str, RestaurantBodies]]:
        """Read restaurants, and keep them.

        Args:
            parts: what to read of each restaurant; panes that were read before are kept current.
            states: the windows whose state is made at once, by restaurant.
        """
        # All who asked for one of them wait, and streams: in a line that is no caller's.
        LINE.set("restaurants")
        earlier = {name: self._panes[name] for name in parts if name in self._panes}

        def read(view: SnapshotView) -> dict[str, RestaurantBodies]:
            restaurants = read_restaurants(view, parts, earlier)
            for name, bodies in restaurants.items():
                for hours in filter(bodies.has, states.get(name, ())):
                    bodies.get("state", hours)
            return restaurants

        answer = await self._readings.run(self._readings.read_now, read)
        for name, bodies in answer.value.items():
            self._readings.keep(_key(name), Answer(answer.published, bodies))
            self._keep_panes(name, answer.published, bodies.panes)
        return answer

    def _keep_panes(self, name: str, published: Published, panes: Panes | None) -> None:
        before = self._panes.get(name)
        if before is not None and before.published.is_later_than(published):
            return
        if panes is not None:
            self._panes[name] = Answer(published, panes)
            if len(self._panes) > _MOST_RECENT:
                del self._panes[next(iter(self._panes))]
        else:
            # The changes since are not known any more.
            self._panes.pop(name, None)


def _key(restaurant_id: str) -> Hashable:
    return "restaurant", restaurant_id
