"""Bodies computed once a snapshot and shared by everyone who may have them.

Who may see a restaurant is decided before this is asked: nothing here knows a caller.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

from livemart.publish.reader import SnapshotView, StoreReader
from livemart.publish.served import Published, ServedModel
from livemart.serve import bodies
from livemart.serve.facts import Facts, read_facts
from livemart.serve.hub import Hub, Topic, is_later, is_same, is_same_or_later, state_of
from livemart.serve.problems import ProblemError

Kind = Literal["metrics", "top-dishes", "state"]
Result = TypeVar("Result")
# More threads would only wait for each other.
_THREADS = 4
# Results of one snapshot; the longest trend is 25 kB, so all of them are 125 MB at most.
_MOST_KEPT = 5_000
# Restaurants read in one query.
_TOGETHER = 50
# Restaurants that are read ahead of their being asked for again.
_MOST_ASKED = 300


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """A result, and the snapshot it was read from."""

    published: Published
    value: Result


@dataclass(slots=True)
class RestaurantBodies:
    """The bodies of one restaurant at one snapshot, each encoded when it is first asked for."""

    facts: Facts
    _encoded: dict[tuple[Kind, int], bytes] = field(default_factory=dict)

    def get(self, kind: Kind, hours: int) -> bytes:
        """Return a body as JSON; that of `state` lacks the server's time."""
        found = self._encoded.get((kind, hours))
        if found is None:
            make = _MAKERS[kind]
            found = self._encoded[(kind, hours)] = to_json(make(self.facts, hours))
        return found


_MAKERS: Mapping[Kind, Callable[[Facts, int], bodies.Body]] = {
    "metrics": bodies.metrics_of,
    "top-dishes": bodies.top_dishes_of,
    "state": bodies.state_of,
}


class Answers:
    """Reads the store in threads of its own; what one asks for, all who ask meanwhile get, too."""

    def __init__(self, reader: StoreReader, hub: Hub) -> None:
        self._reader = reader
        self._hub = hub
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="store")
        self._kept: dict[Hashable, Answer[Any]] = {}
        self._flights: dict[Hashable, asyncio.Task[Any]] = {}
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._wanted: dict[str, asyncio.Future[RestaurantBodies | None]] = {}
        self._reading: asyncio.Task[None] | None = None
        hub.prepare = self.prepare

    def close(self) -> None:
        """Give the threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def newest(self) -> Published:
        """Return the newest snapshot that any answer was of: whoever has it sees none before it.

        Raises:
            ProblemError: NOTHING_PUBLISHED, STORE_UNREACHABLE.
        """
        if self._hub.newest is None:
            if self._hub.failure is not None:
                raise self._hub.failure
            # Before the first look of the hub.
            newest = await self.run(self._reader.newest)
            if newest is None:
                raise ProblemError("NOTHING_PUBLISHED", "the first snapshot is not published yet")
            self._hub.observe(newest)
            return newest
        return self._hub.newest

    async def restaurant(self, restaurant_id: str) -> RestaurantBodies | None:
        """Return the bodies of a restaurant at the newest snapshot; None if it is unknown."""
        key = ("restaurant", restaurant_id)
        while True:
            newest = await self.newest()
            kept = self._fresh(key, newest)
            if kept is not None:
                answer: RestaurantBodies | None = kept.value
                break
            wanted = self._wanted.get(restaurant_id)
            if wanted is None:
                wanted = self._wanted[restaurant_id] = asyncio.get_running_loop().create_future()
                if self._reading is None or self._reading.done():
                    self._reading = asyncio.create_task(self._read_wanted())
            answer = await asyncio.shield(wanted)
            # What was under way already may be of a snapshot that is not the newest any more.
            if answer is None or not is_later(newest, answer.facts.published):
                break
        if answer is not None:
            self._asked[restaurant_id] = None
            self._asked.move_to_end(restaurant_id)
            if len(self._asked) > _MOST_ASKED:
                self._asked.popitem(last=False)
        return answer

    async def trend(self, restaurant_id: str, hours: int) -> Answer[bytes] | None:
        """Return the trend of a restaurant as JSON; None if it is unknown."""
        known = await self.restaurant(restaurant_id)
        if known is None:
            return None

        def read(view: SnapshotView) -> bytes | None:
            facts: Facts | None = known.facts
            if facts is None or not is_same(facts.published, view.published):
                facts = read_facts(view, (restaurant_id,)).get(restaurant_id)
            return None if facts is None else to_json(bodies.trend_of(view, facts, hours))

        answer = await self.read(("trend", restaurant_id, hours), read)
        return None if answer.value is None else cast(Answer[bytes], answer)

    async def models(self) -> Answer[Mapping[str, ServedModel]]:
        """Return the served models of the newest snapshot, by name."""
        return await self.read(("models",), lambda view: dict(view.models()))

    async def read(self, key: Hashable, read: Callable[[SnapshotView], Result]) -> Answer[Result]:
        """Return what `read` makes of the newest snapshot, computed once a snapshot and key.

        A result of None is not kept: there is no end of unknown things to ask for.
        """
        newest = await self.newest()
        kept = self._fresh(key, newest)
        if kept is not None:
            return kept

        async def fly() -> Answer[Result]:
            answer = await self.run(self._read_now, read)
            # The store may be a snapshot further than the hub's last look.
            self._hub.observe(answer.published)
            if answer.value is not None:
                self._keep(key, answer)
            return answer

        return await self.share((key, state_of(newest)), fly)

    async def read_anew(self, read: Callable[[SnapshotView], Result]) -> Result:
        """Return what `read` makes of the newest snapshot, for this one caller."""
        answer: Answer[Result] = await self.run(self._read_now, read)
        self._hub.observe(answer.published)
        return answer.value

    async def share(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Return the result of `work`, which runs once for all who want `key` at the same time."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(work())
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        # One who leaves must not take the others' result along.
        return cast(Result, await asyncio.shield(flight))

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function that asks the store, in a thread."""
        loop = asyncio.get_running_loop()
        found: Result = await loop.run_in_executor(self._threads, partial(function, *arguments))
        return found

    async def prepare(self, topics: Iterable[Topic]) -> None:
        """Read what a new snapshot will be asked for at once, before anybody is told of it.

        That is what open streams want, and the restaurants that were asked for last.
        """
        states: dict[str, set[int]] = {}
        for restaurant_id, hours in topics:
            states.setdefault(restaurant_id, set()).add(hours)
        names = sorted({*states, *self._asked})
        for start in range(0, len(names), _TOGETHER):
            await self._read_restaurants(names[start : start + _TOGETHER], states)

    async def _read_wanted(self) -> None:
        """Read all that is wanted by now in one query; what is wanted meanwhile, in the next."""
        while self._wanted:
            names = list(self._wanted)[:_TOGETHER]
            wanted = {name: self._wanted[name] for name in names}
            try:
                answer = await self._read_restaurants(names, {})
                # The store may be a snapshot further than the hub's last look.
                self._hub.observe(answer.published)
            except Exception as error:
                for name, future in wanted.items():
                    del self._wanted[name]
                    future.set_exception(error)
                    # Told to whoever still waits; it is no news to nobody.
                    future.exception()
                continue
            for name, future in wanted.items():
                del self._wanted[name]
                future.set_result(answer.value.get(name))

    async def _read_restaurants(
        self, names: Sequence[str], states: Mapping[str, Iterable[int]]
    ) -> Answer[dict[str, RestaurantBodies]]:
        def read(view: SnapshotView) -> dict[str, RestaurantBodies]:
            found = {
                name: RestaurantBodies(facts) for name, facts in read_facts(view, names).items()
            }
            for name, bodies_ in found.items():
                for hours in states.get(name, ()):
                    bodies_.get("state", hours)
            return found

        answer: Answer[dict[str, RestaurantBodies]] = await self.run(self._read_now, read)
        for name, bodies_ in answer.value.items():
            self._keep(("restaurant", name), Answer(answer.published, bodies_))
        return answer

    def _fresh(self, key: Hashable, newest: Published) -> Answer[Any] | None:
        """Return what is kept if it is of the newest snapshot, or of one still newer."""
        kept = self._kept.get(key)
        if kept is None or not is_same_or_later(kept.published, newest):
            return None
        self._hub.observe(kept.published)
        return kept

    def _read_now(self, read: Callable[[SnapshotView], Result]) -> Answer[Result]:
        with self._reader.snapshot() as view:
            return Answer(view.published, read(view))

    def _keep(self, key: Hashable, answer: Answer[Any]) -> None:
        """Keep results of one snapshot only: the newest that was seen."""
        first = next(iter(self._kept.values()), None)
        if first is not None and state_of(first.published) != state_of(answer.published):
            if is_later(first.published, answer.published):
                return
            self._kept.clear()
        self._kept[key] = answer
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def to_json(body: object) -> bytes:
    """Return JSON without spaces, in UTF-8."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def with_server_time(body: bytes, now: datetime) -> bytes:
    """Return the JSON object `body` with the server's clock as its first member."""
    return b'{"server_time":"' + str(bodies.to_text(now)).encode() + b'",' + body[1:]
