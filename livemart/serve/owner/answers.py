"""The owner's restaurants at the newest snapshot: read many at once, and ahead of being asked for.

Who may see a restaurant is decided before this is asked: nothing here knows a caller.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass

from livemart.serve.live.hub import Hub, Topic
from livemart.serve.live.readings import Readings
from livemart.serve.live.shelf import Answer
from livemart.serve.owner.facts import end_of, has_owner_models, read_facts
from livemart.serve.owner.late_orders import read_late_orders
from livemart.serve.owner.panes import LONGEST, Panes, follow_panes, read_panes
from livemart.serve.owner.restaurant import PARTS, Kind, Part, RestaurantBodies
from livemart.store.reader import StoreReader
from livemart.store.served import Published, ServedModel
from livemart.store.snapshot_view import SnapshotView

_NOTHING: frozenset[Part] = frozenset()
# Restaurants read in one query.
_TOGETHER = 20
# Restaurants that are read ahead of their being asked for again.
_MOST_ASKED = 300


@dataclass(slots=True)
class _Wish:
    """What is waited for: a restaurant, and what the bodies asked for are made of."""

    found: asyncio.Future[RestaurantBodies | None]
    parts: frozenset[Part]


class Answers(Readings):
    """Everything that is read from the store; of restaurants, their bodies."""

    def __init__(self, reader: StoreReader, hub: Hub) -> None:
        super().__init__(reader, hub)
        self._asked: OrderedDict[str, None] = OrderedDict()
        # Of restaurants whose trend was asked for: the next snapshot changes a few of them.
        self._panes: dict[str, Answer[Panes]] = {}
        self._wanted: dict[str, _Wish] = {}
        self._granting: asyncio.Task[None] | None = None
        # Restaurants are read by one thread at a time: more would keep the event loop waiting.
        self._turn = asyncio.Lock()
        hub.prepare = self.prepare

    async def restaurant(self, restaurant_id: str, kind: Kind) -> RestaurantBodies | None:
        """Return the bodies of a restaurant at the newest snapshot; None if it is unknown.

        Args:
            restaurant_id: of a restaurant that the caller may see.
            kind: the body that is asked for.
        """
        parts = PARTS[kind]
        while True:
            newest = await self.newest()
            found = self._kept(restaurant_id, newest, parts)
            if found is None:
                found = await asyncio.shield(self._want(restaurant_id, parts))
                if found is None:
                    return None
            # What was under way already may be of a snapshot that is not the newest any more.
            is_old = newest.is_later_than(found.facts.published)
            if not is_old and parts <= found.parts:
                self._remember(restaurant_id, newest)
                return found

    async def models(self) -> Answer[Mapping[str, ServedModel]]:
        """Return the served models of the newest snapshot, by name."""
        return await self.read(("models",), lambda view: dict(view.models()))

    async def prepare(self, topics: Iterable[Topic]) -> None:
        """Read what a new snapshot will be asked for at once, before anybody is told of it.

        That is what open streams want, and the restaurants that were asked for last.
        """
        told, states = self._hub.published, defaultdict[str, set[int]](set)
        for restaurant_id, hours in topics:
            states[restaurant_id].add(hours)
        names = sorted({*states, *self._asked})
        for start in range(0, len(names), _TOGETHER):
            async with self._turn:
                # Somebody may have asked for it meanwhile.
                rest = [
                    name
                    for name in names[start : start + _TOGETHER]
                    if told is None
                    or (kept := self._shelf.find(_key(name), told)) is None
                    or not kept.published.is_later_than(told)
                ]
                if rest:
                    parts = {name: PARTS["state"] if name in states else _NOTHING for name in rest}
                    await self._read_restaurants(parts, states)

    def _kept(
        self, name: str, newest: Published, parts: frozenset[Part]
    ) -> RestaurantBodies | None:
        kept = self.find(_key(name), newest)
        return kept.value if kept is not None and parts <= kept.value.parts else None

    def _known_parts(self, name: str, newest: Published) -> frozenset[Part]:
        kept = self.find(_key(name), newest)
        return _NOTHING if kept is None else kept.value.parts

    def _remember(self, restaurant_id: str, newest: Published) -> None:
        """Remember who was asked for last; panes take space, and the others' are forgotten."""
        self._asked[restaurant_id] = None
        self._asked.move_to_end(restaurant_id)
        if len(self._asked) > _MOST_ASKED:
            forgotten, _ = self._asked.popitem(last=False)
            self._panes.pop(forgotten, None)
            kept = self._shelf.find(_key(forgotten), newest)
            if kept is not None:
                kept.value.panes = None

    def _want(self, name: str, parts: frozenset[Part]) -> asyncio.Future[RestaurantBodies | None]:
        wish = self._wanted.get(name)
        if wish is None:
            wish = self._wanted[name] = _Wish(asyncio.get_running_loop().create_future(), parts)
            if self._granting is None or self._granting.done():
                self._granting = asyncio.create_task(self._grant())
        wish.parts |= parts
        return wish.found

    async def _grant(self) -> None:
        """Read all that is wanted by now in one query; what is wanted meanwhile, in the next."""
        while self._wanted:
            async with self._turn:
                names = list(self._wanted)[:_TOGETHER]
                wanted = {name: self._wanted.pop(name) for name in names}
                try:
                    granted = await self._read_wanted(wanted)
                except Exception as error:
                    for wish in wanted.values():
                        wish.found.set_exception(error)
                        # Told to whoever still waits; it is no news to nobody.
                        wish.found.exception()
                else:
                    for name, wish in wanted.items():
                        wish.found.set_result(granted.get(name))

    async def _read_wanted(self, wanted: Mapping[str, _Wish]) -> dict[str, RestaurantBodies]:
        newest = await self.newest()
        granted: dict[str, RestaurantBodies] = {}
        for name, wish in wanted.items():
            # It may have been read ahead while this waited for its turn.
            if (kept := self._kept(name, newest, wish.parts)) is not None:
                granted[name] = kept
        rest = [name for name in wanted if name not in granted]
        if rest:
            # What was known of it before is going to be asked for again.
            parts = {name: wanted[name].parts | self._known_parts(name, newest) for name in rest}
            answer = await self._read_restaurants(parts, {})
            # The store may be a snapshot further than the hub's last look.
            self._hub.observe(answer.published)
            granted |= answer.value
        return granted

    async def _read_restaurants(
        self, parts: Mapping[str, frozenset[Part]], states: Mapping[str, Iterable[int]]
    ) -> Answer[dict[str, RestaurantBodies]]:
        """Read restaurants, and keep them.

        Args:
            parts: what is wanted of each restaurant; panes that were read before are kept current.
            states: the windows whose state is made at once, by restaurant.
        """
        known = {name: self._panes[name] for name in parts if name in self._panes}

        def read(view: SnapshotView) -> dict[str, RestaurantBodies]:
            panes = _read_panes(view, known, [name for name in parts if "panes" in parts[name]])
            by_name = read_facts(view, parts)
            told = [name for name in by_name if "late" in parts[name]]
            corrected = read_late_orders(view, told, end_of(view.published))
            found = {
                name: RestaurantBodies(facts, panes.get(name), corrected.get(name))
                for name, facts in by_name.items()
            }
            for name, bodies in found.items():
                for hours in filter(bodies.has, states.get(name, ())):
                    bodies.get("state", hours)
            return found

        answer: Answer[dict[str, RestaurantBodies]] = await self.run(self.read_now, read)
        for name, bodies in answer.value.items():
            self.keep(_key(name), Answer(answer.published, bodies))
            self._keep_panes(name, answer.published, bodies.panes)
        return answer

    def _keep_panes(self, name: str, published: Published, panes: Panes | None) -> None:
        known = self._panes.get(name)
        if known is not None and known.published.is_later_than(published):
            return
        if panes is not None:
            self._panes[name] = Answer(published, panes)
            if len(self._panes) > _MOST_ASKED:
                del self._panes[next(iter(self._panes))]
        elif known is not None:
            # What changed since is not known any more.
            del self._panes[name]


def _read_panes(
    view: SnapshotView, known: Mapping[str, Answer[Panes]], wanted: Collection[str]
) -> dict[str, Panes]:
    """Return panes as `view` has them: of restaurants where they are known, and where wanted."""
    if not has_owner_models(view):
        return {}
    end = end_of(view.published)
    by_snapshot: defaultdict[Published, dict[str, Panes]] = defaultdict(dict)
    for name, answer in known.items():
        by_snapshot[answer.published][name] = answer.value
    found: dict[str, Panes] = {}
    for before, panes in by_snapshot.items():
        found |= follow_panes(view, before, panes, end)
    rest = [name for name in wanted if name not in found]
    return found | (read_panes(view, rest, end - LONGEST) if rest else {})


def _key(restaurant_id: str) -> Hashable:
    return "restaurant", restaurant_id
