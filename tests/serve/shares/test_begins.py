"""Requests begin in turns of tokens and addresses, however many of one are there first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from livemart.serve.http.measurements import Measurements
from livemart.serve.shares import begins as begins_module
from livemart.serve.shares.begins import Begins
from livemart.serve.shares.round_robin import LINE


class Requests:
    """Requests to an application that notes the order in which they begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[str] = []
        self.lines: list[object] = []
        self.measurements = Measurements()
        self._begins = Begins(self._begin, self.measurements)
        monkeypatch.setattr(
            begins_module, "shown_token_id", lambda request: request.headers.get("token")
        )

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["name"])
        self.lines.append(LINE.get())

    async def ask(
        self, name: str, token: str = "", address: str = "192.0.2.1", path: str = "/v1/models"
    ) -> None:
        """Send one request; it has ended when it has begun."""
        headers = [(b"token", token.encode())] if token else []
        scope = {"type": "http", "path": path, "headers": headers, "client": (address, 1)}
        unused: Any = None
        await self._begins({**scope, "name": name, "app": SimpleNamespace()}, unused, unused)

    def waiting(self) -> float | None:
        """Return how many requests wait, as `/metrics` says."""
        text = self.measurements.render().decode()
        (line,) = [it for it in text.splitlines() if it.startswith("livemart_waiting_requests ")]
        return float(line.partition(" ")[2])


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


def ask_at_once(requests: Requests, *asked: Sequence[str]) -> list[str]:
    async def ask() -> None:
        await asyncio.gather(*(requests.ask(*each) for each in asked))

    asyncio.run(ask())
    return requests.begun


def test_those_of_one_token_do_not_come_before_another_tokens(requests: Requests) -> None:
    greedy = [(f"g{number}", "greedy") for number in range(100)]

    begun = ask_at_once(requests, *greedy, ("o0", "other"), ("o1", "other"))

    assert begun[:5] == ["g0", "g1", "o0", "g2", "o1"]
    assert len(begun) == 102 and begun[5:] == [f"g{number}" for number in range(3, 100)]
    assert requests.waiting() == 0


def test_without_a_token_addresses_take_turns(requests: Requests) -> None:
    greedy = [(f"g{number}", "", "192.0.2.1") for number in range(5)]

    begun = ask_at_once(requests, *greedy, ("o", "", "192.0.2.2"), ("t", "token", "192.0.2.1"))

    assert begun == ["g0", "g1", "o", "t", "g2", "g3", "g4"]
    assert requests.lines[:4] == [
        *["address 192.0.2.1"] * 2,
        *["address 192.0.2.2", "token"],
    ]


def test_one_that_comes_while_another_runs_is_next(requests: Requests) -> None:
    """However quick the greedy caller's requests are, each of which is followed by its next."""

    async def ask() -> int:
        before = 0

        async def be_greedy(name: str) -> None:
            for _ in range(10):
                await requests.ask(name, "greedy")

        greedy = [asyncio.create_task(be_greedy(f"g{number}")) for number in range(50)]
        while len(requests.begun) < 20:
            await asyncio.sleep(0)
        before = len(requests.begun)
        # As a server has it: bytes are read in one round, and a task begins in the next.
        loop, arrived = asyncio.get_running_loop(), loop_future()
        loop.call_soon(lambda: arrived.set_result(loop.create_task(requests.ask("o", "other"))))
        await (await arrived)
        count = requests.begun.index("o") - before
        await asyncio.gather(*greedy)
        return count

    def loop_future() -> asyncio.Future[asyncio.Task[None]]:
        return asyncio.get_running_loop().create_future()

    assert asyncio.run(ask()) <= 1


def test_health_never_waits_and_who_is_cancelled_takes_no_turn(requests: Requests) -> None:
    async def ask() -> None:
        tasks = [asyncio.create_task(requests.ask(f"g{number}", "greedy")) for number in range(4)]
        await asyncio.sleep(0)
        assert (requests.begun, requests.waiting()) == (["g0"], 3)
        tasks[1].cancel()
        for path in ("/healthz", "/readyz"):
            await requests.ask(path, "greedy", path=path)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(ask())

    assert requests.begun == ["g0", "/healthz", "/readyz", "g2", "g3"]
