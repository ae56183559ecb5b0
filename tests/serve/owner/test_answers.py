"""While a snapshot is prepared readers have the one before, and they never go back to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.http.problems import ProblemError
from livemart.serve.live.hub import Hub
from livemart.serve.live.readings import Readings
from livemart.serve.live.snapshot_json import to_json
from livemart.serve.owner import bodies
from livemart.serve.owner.answers import PARTS, Answers, BodyKind, BodyPart, RestaurantBodies
from livemart.serve.owner.facts import Facts
from livemart.serve.owner.panes import Panes
from livemart.store.reader import StoreReader
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView
from tests.serve.owner.window_bodies import trend_body
from tests.store.stores import NOON, Order, fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S, wait_until

LATER = NOON + timedelta(minutes=5)
ORDERS = make_orders(LATER)
ROUNDS = 3
KINDS: tuple[BodyKind, ...] = ("metrics", "trend", "state", "top-dishes")
ROW = {
    "restaurant_id": "r1",
    "restaurant_name": "Taverna Azul",
    "time_zone": "Europe/Lisbon",
    "currency_code": "EUR",
    "window_hours": 24,
    "order_count": 2,
    "sales_amount": Decimal("19.00"),
    "average_order_value": Decimal("9.50"),
    "unique_customers": 2,
    "previous_order_count": None,
    "previous_sales_amount": None,
    "previous_average_order_value": None,
}
NONE = Panes(NOON - timedelta(hours=1), (), (), (), frozenset(), 2)


class SlowReader(StoreReader):
    """Reads when it may, and counts how often."""

    def __init__(self, url: str) -> None:
        super().__init__(StoreReader.open(url)._engine)
        self.may_read = threading.Event()
        self.may_read.set()
        self.reads = 0

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotView]:
        self.reads += 1
        assert self.may_read.wait(PATIENCE_S)
        with super().snapshot() as view:
            yield view


def test_while_a_snapshot_is_prepared_the_one_before_is_answered(store_url: str) -> None:
    fill_store(store_url, reference_tables(ORDERS, NOON))

    async def read() -> tuple[list[bytes], list[bytes], list[int]]:
        async with _answering(store_url) as (reader, hub, answers):
            await answers.restaurant("r1", "trend")
            await asyncio.to_thread(_publish, store_url, 2)
            reader.may_read.clear()
            looking = asyncio.create_task(hub.look())
            await asyncio.to_thread(wait_until, lambda: reader.reads >= 2)
            before = await _all_of(answers)
            reader.may_read.set()
            await looking
            counts = [reader.reads]
            after = await _all_of(answers)
            return before, after, [*counts, reader.reads]

    before, after, counts = asyncio.run(read())

    assert {json.loads(each)["snapshot_id"] for each in before} == {1}
    assert {json.loads(each)["snapshot_id"] for each in after} == {2}
    # Prepared answers are not read again, including a trend's panes.
    assert counts == [2, 2]
    with closing(StoreReader.open(store_url)) as reader, reader.snapshot() as view:
        assert [json.loads(each) for each in after[1:]] == [
            trend_body(view, "r1", hours) for hours in (1, 24, 168)
        ]


def test_who_asks_for_more_while_a_snapshot_is_prepared_takes_all_along(store_url: str) -> None:
    fill_store(store_url, reference_tables(ORDERS, NOON))

    async def read() -> list[int]:
        async with _answering(store_url) as (_, _, answers):
            known = await answers.restaurant("r1", "metrics")
            await asyncio.to_thread(_publish, store_url, 2)
            # It was not requested before, so it is of the store's newest.
            other = await answers.restaurant("r2", "trend")
            again = await answers.restaurant("r1", "metrics")
            assert known and other and again
            return [each.facts.published.snapshot_id for each in (known, other, again)]

    assert asyncio.run(read()) == [1, 2, 2]


def test_readers_beside_publications_never_go_back(store_url: str) -> None:
    fill_store(store_url, reference_tables(ORDERS, NOON))

    async def read() -> list[int]:
        seen: list[int] = []
        async with _answering(store_url) as (_, hub, answers):
            names = ["r1", "r2", "r3"]

            async def ask(number: int) -> None:
                for turn in range(40):
                    name, kind = names[(number + turn) % 3], KINDS[turn % len(KINDS)]
                    found = await answers.restaurant(name, kind)
                    assert found is not None and _is_one(found, kind)
                    seen.append(found.facts.published.snapshot_id)
                    await asyncio.sleep(0)

            for snapshot_id in range(2, 2 + ROUNDS):
                publishing = asyncio.create_task(
                    asyncio.to_thread(_publish, store_url, snapshot_id)
                )
                await asyncio.gather(*(ask(number) for number in range(6)), hub.look())
                await publishing
            await hub.look()
            found = await answers.restaurant("r1", "metrics")
            assert found is not None
            return [*seen, found.facts.published.snapshot_id]

    seen = asyncio.run(read())

    assert seen == sorted(seen)
    assert seen[-1] == 1 + ROUNDS


def test_a_part_that_was_read_stays_when_another_is_asked_for(store_url: str) -> None:
    fill_store(store_url, reference_tables(ORDERS, NOON))

    async def read() -> tuple[list[frozenset[BodyPart]], int]:
        async with _answering(store_url) as (reader, _, answers):
            parts = []
            for kind in (*KINDS, *KINDS):
                found = await answers.restaurant("r1", kind)
                assert found is not None
                parts.append(found.parts)
            return parts, reader.reads

    parts, reads = asyncio.run(read())

    both = frozenset({"panes", "late"})
    assert parts == [frozenset(), frozenset({"panes"}), *[both] * 6]
    # One each for the tiles, the trend and the state.
    assert reads == 3


def test_a_trend_is_made_from_panes_that_were_kept_current(store_url: str) -> None:
    fill_store(store_url, reference_tables(ORDERS, NOON))
    late = Order("late", "r1", "c1", NOON - timedelta(hours=170), (("d5", 3),), LATER)

    async def read() -> bytes:
        async with _answering(store_url) as (_, hub, answers):
            await answers.restaurant("r1", "trend")
            await asyncio.to_thread(_publish, store_url, 2, [late])
            await hub.look()
            found = await answers.restaurant("r1", "trend")
            assert found is not None
            return found.get("trend", 168)

    text = asyncio.run(read())

    body = json.loads(text)
    assert text == to_json(body)
    with closing(StoreReader.open(store_url)) as reader, reader.snapshot() as view:
        assert body == trend_body(view, "r1", 168)
    assert body["snapshot_id"] == 2


def _publish(url: str, snapshot_id: int, more: list[Order] | None = None) -> None:
    tables = reference_tables([*ORDERS, *(more or [])], LATER)
    fill_store(url, tables, snapshot_id=snapshot_id, as_of=LATER)


async def _all_of(answers: Answers) -> list[bytes]:
    found = await answers.restaurant("r1", "trend")
    assert found is not None
    return [found.get("metrics", 24), *(found.get("trend", hours) for hours in (1, 24, 168))]


def _is_one(found: RestaurantBodies, kind: BodyKind) -> bool:
    made = [each for each in KINDS if PARTS[each] <= found.parts]
    bodies = [json.loads(found.get(each, 24)) for each in made]
    return kind in made and len({body["snapshot_id"] for body in bodies}) == 1


@asynccontextmanager
async def _answering(url: str) -> AsyncIterator[tuple[SlowReader, Hub, Answers]]:
    with closing(TokenStore(url)) as tokens, closing(SlowReader(url)) as reader:
        hub = Hub(reader, TokenBook(tokens))
        readings = Readings(reader, hub)
        answers = Answers(readings, hub)
        await hub.look()
        try:
            yield reader, hub, answers
        finally:
            hub.close()
            readings.close()


def restaurant() -> RestaurantBodies:
    published = Published(7, NOON, NOON, "epoch", NOON)
    return RestaurantBodies(Facts(published, "r1", {24: ROW}, {}, NONE, None))


def test_a_body_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    metrics_of = bodies.metrics_of

    def counted(facts: Facts, hours: int) -> Any:
        asked.append(hours)
        return metrics_of(facts, hours)

    monkeypatch.setattr("livemart.serve.owner.answers.metrics_of", counted)
    known = restaurant()

    first, second = known.get("metrics", 24), known.get("metrics", 24)

    assert first is second and asked == [24]
    assert json.loads(first)["metrics"]["sales_amount"]["value"] == "19.00"


def test_a_window_of_which_there_are_no_figures_is_refused() -> None:
    known = restaurant()

    known.facts.of_window(24)
    assert known.has(24) and not known.has(1)
    with pytest.raises(ProblemError, match="windows here are 24h; found 1h") as caught:
        known.facts.of_window(1)
    assert (caught.value.code, caught.value.status) == ("WINDOW_UNKNOWN", 422)


@pytest.mark.parametrize("kind", ["trend", "state"])
def test_a_body_of_parts_that_were_not_read_is_a_fault_and_no_empty_answer(kind: str) -> None:
    known = restaurant()

    assert known.parts == frozenset() and PARTS[kind]  # type: ignore[index]
    with pytest.raises(ValueError, match=r"r1: its .* were not read"):
        known.get(kind, 24)  # type: ignore[arg-type]
    known.panes = NONE
    assert known.parts == {"panes"} and json.loads(known.get("trend", 24))
