"""A caller's share is its token's, or its address's; each kind of reading is within it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from livemart.serve.auth.callers import Caller
from livemart.serve.http.measurements import Measurements
from livemart.serve.shares.shares import Shares, owner_of
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
