"""A caller's share is its token's, or its address's; each kind of reading is within it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from livemart.serve.auth.callers import Caller
from livemart.serve.http.measurements import Measurements
from livemart.serve.shares.shares import QueueFullError, Shares, Turns, WaiterLeftError, owner_of
from tests.serve.apps import Site, bearer, make_settings, site
from tests.serve.http.requests import request_of
from tests.store.stores import fill_store, reference_tables

ROWS = "/v1/models/restaurant_order_metrics"


def fill(one: Site) -> None:
    fill_store(one.url, reference_tables([]))
    one.until(lambda: one.shows(1))


def turns_of(one: Site) -> int:
    shares = one.app.state.parts[Shares]
    return len(shares.turns)


def test_the_share_is_of_the_token_and_of_an_address_where_there_is_none() -> None:
    request = request_of()

    assert owner_of(request, Caller(None, "id")) == owner_of(request, Caller(frozenset(), "id"))
    assert owner_of(request, Caller(None)).startswith("address ")


def test_pulls_are_followed_by_rests_if_many_more_wait_while_others_ask(tmp_path: Path) -> None:
    now = [100.0]
    shares = Shares(make_settings(tmp_path), Measurements(), lambda: now[0])
    greedy, other = Caller(None, "greedy"), Caller(None, "other")

    async def ask() -> list[float]:
        held = [await shares.hold(request_of(), greedy, "pull") for _ in range(2)]
        waiting = [asyncio.create_task(shares.hold(request_of(), greedy, "pull")) for _ in range(5)]
        await asyncio.sleep(0)
        now[0] += 0.02
        rests = [shares.rest_s(held[0])]
        figures = await shares.hold(request_of(), other, "figures")
        rests.append(shares.rest_s(held[0]))
        now[0] += 0.5
        rests += [shares.rest_s(held[0]), shares.rest_s(figures)]
        waiting.pop().cancel()
        await asyncio.sleep(0)
        # As many as a browser has.
        rests.append(shares.rest_s(held[0]))
        waiting.append(asyncio.create_task(shares.hold(request_of(), greedy, "pull")))
        await asyncio.sleep(0)
        now[0] += 0.6
        # The other one asked more than a second ago.
        rests.append(shares.rest_s(held[0]))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return [round(each, 6) for each in rests]

    assert asyncio.run(ask()) == [0.0, 0.04, 0.25, 0.0, 0.0, 0.0]


def test_who_read_too_many_rows_waits_and_others_do_not(tmp_path: Path) -> None:
    with site(tmp_path, caller_rows=1) as one:
        fill(one)
        greedy, other = one.bearer("r1"), one.bearer("r1")
        first = one.client.get(ROWS, headers=greedy)
        count = len(first.json()["rows"])

        second = one.client.get(ROWS, headers=greedy)

        assert (first.status_code, count > 0) == (200, True)
        assert (second.status_code, second.json()["code"]) == (429, "TOO_MANY_ROWS")
        # One row a minute: the debt, and one more.
        assert count * 60 - 5 < int(second.headers["retry-after"]) <= count * 60
        assert '"rows";r=0' in first.headers["ratelimit"]
        assert one.client.get(ROWS, headers=other).status_code == 200
        assert one.client.get("/healthz").status_code == 200
        told = one.client.get("/metrics", headers=one.bearer()).text
        assert 'livemart_refused_pulls_total{reason="rows"} 1.0' in told


@pytest.mark.parametrize(
    ("path", "most"),
    [
        (ROWS, 102),
        (f"{ROWS}?limit=0", 102),
        ("/v1/models/unknown", 102),
        ("/v1/models", 102),
        ("/v1/restaurants", 120),
        ("/v1/restaurants/r1/metrics", 120),
        ("/v1/dead-letters", 102),
        ("/models", 102),
        ("/models/restaurant_top_dishes", 102),
        ("/dead-letters", 102),
    ],
)
def test_each_answer_says_what_is_left_and_gives_its_turn_back(
    one_site: Site, path: str, most: int
) -> None:
    """An error, too."""
    answer = one_site.client.get(path)

    assert answer.headers["ratelimit"].endswith(f'"pulls";r={most}')
    assert turns_of(one_site) == 0


@pytest.fixture(scope="module")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> object:
    with site(tmp_path_factory.mktemp("shares"), page=True) as one:
        fill(one)
        yield one


def test_guessers_slow_nobody_else_behind_their_proxy(tmp_path: Path) -> None:
    with site(tmp_path, attempts=2) as one:
        fill(one)
        right = one.bearer("r1")
        guesses = [one.client.get(ROWS, headers=bearer("guess")) for _ in range(4)]

        answer = one.client.get(ROWS, headers=right)

        assert [guess.status_code for guess in guesses] == [401, 401, 429, 429]
        assert answer.status_code == 200


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_who_asks_for_much_waits_for_itself_alone() -> None:
    async def ask() -> list[str]:
        turns, served = Turns(10), list[str]()

        async def pull(owner: str, name: str) -> None:
            await turns.take(owner, 1)
            served.append(name)
            await settle()
            turns.give_back(owner)

        greedy = [pull("greedy", f"greedy {number}") for number in range(4)]
        await asyncio.gather(*greedy, pull("other", "other"))
        assert (len(turns), turns.waiting) == (0, 0)
        return served

    served = asyncio.run(ask())

    assert served == ["greedy 0", "other", "greedy 1", "greedy 2", "greedy 3"]


def test_one_more_than_may_wait_is_refused_and_no_other_caller_is() -> None:
    async def ask() -> None:
        turns = Turns(1)
        await turns.take("a", 2)
        await turns.take("a", 2)
        waiting = asyncio.create_task(turns.take("a", 2))
        await settle()

        assert (turns.room("a", 2), turns.room("b", 2), turns.waiting) == (0, 3, 1)
        assert (turns.waiting_of("a"), turns.waiting_of("b")) == (1, 0)
        with pytest.raises(QueueFullError):
            await turns.take("a", 2)
        patient = asyncio.create_task(turns.take("a", 2, is_patient=True))
        await turns.take("b", 2)
        for _ in range(2):
            turns.give_back("a")
        await asyncio.gather(waiting, patient)
        assert turns.waiting_of("a") == 0

    asyncio.run(ask())


def test_the_next_turn_of_a_caller_comes_after_its_rest_and_others_do_not_wait() -> None:
    async def ask() -> None:
        turns = Turns(10)
        await turns.take("greedy", 1)
        next_one = asyncio.create_task(turns.take("greedy", 1))
        await settle()

        turns.give_back("greedy", rest_s=0.01)
        await turns.take("other", 1)
        # The turn is not free meanwhile.
        assert (next_one.done(), turns.room("greedy", 1)) == (False, 9)
        turns.give_back("other", rest_s=60)
        assert len(turns) == 1

        await next_one
        turns.give_back("greedy")
        assert len(turns) == 0

    asyncio.run(ask())


def test_a_turn_whose_waiters_have_left_is_free_after_the_rest() -> None:
    async def ask() -> None:
        turns = Turns(10)
        await turns.take("greedy", 1)
        gone = asyncio.create_task(turns.take("greedy", 1))
        await settle()
        turns.give_back("greedy", rest_s=0.01)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)

        await turns.take("greedy", 1)
        turns.give_back("greedy")
        assert len(turns) == 0

    asyncio.run(ask())


@pytest.mark.parametrize("is_its_turn", [False, True])
def test_one_who_is_cancelled_leaves_the_line_and_takes_no_turn_along(is_its_turn: bool) -> None:
    async def ask() -> None:
        turns = Turns(10)
        await turns.take("a", 1)
        gone, next_one = (asyncio.create_task(turns.take("a", 1)) for _ in range(2))
        await settle()
        if is_its_turn:
            turns.give_back("a")
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert gone.cancelled()
        if not is_its_turn:
            assert turns.waiting == 1
            turns.give_back("a")
        await next_one
        turns.give_back("a")
        assert len(turns) == 0

    asyncio.run(ask())


def test_one_whose_client_left_is_taken_out_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livemart.serve.shares.shares._LOOK_EVERY_S", 0.0)

    async def has_left() -> bool:
        return True

    async def ask() -> int:
        turns = Turns(10)
        await turns.take("a", 1)
        with pytest.raises(WaiterLeftError):
            await turns.take("a", 1, has_left)
        return turns.waiting

    assert asyncio.run(ask()) == 0
