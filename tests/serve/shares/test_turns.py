"""Each caller has so many pulls under way, the rest wait in line, and who left is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from livemart.serve.shares import turns as turns_module
from livemart.serve.shares.turns import QueueFullError, Turns, WaiterLeftError


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
    monkeypatch.setattr(turns_module, "_LOOK_EVERY_S", 0.0)

    async def has_left() -> bool:
        return True

    async def ask() -> int:
        turns = Turns(10)
        await turns.take("a", 1)
        with pytest.raises(WaiterLeftError):
            await turns.take("a", 1, has_left)
        return turns.waiting

    assert asyncio.run(ask()) == 0
