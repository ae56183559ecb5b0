"""No caller waits longer for a store than allowed, and at most one thread keeps waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from livemart.errors import PublishError
from livemart.serve.http.in_time import Inquiry


def test_one_question_serves_all_who_wait_and_a_late_answer_is_still_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("livemart.serve.http.in_time.ANSWERS_WITHIN_S", 0.02)

    async def ask() -> tuple[list[str], list[int], int]:
        asked = 0
        may_answer = asyncio.Event()

        async def count() -> int:
            nonlocal asked
            asked += 1
            await may_answer.wait()
            return asked

        inquiry = Inquiry(count)
        late = await asyncio.gather(*(inquiry.answer() for _ in range(3)), return_exceptions=True)
        may_answer.set()
        answers = [await inquiry.answer(), await inquiry.answer()]
        assert all(isinstance(each, PublishError) for each in late)
        return [each.code for each in late if isinstance(each, PublishError)], answers, asked

    codes, answers, asked = asyncio.run(ask())

    assert codes == ["STORE_UNREACHABLE"] * 3
    # The one that was under way, and a new one.
    assert (answers, asked) == ([1, 2], 2)


def test_what_a_question_raises_is_raised_and_asked_again() -> None:
    async def ask() -> int:
        answers: Iterator[int | Exception] = iter([ZeroDivisionError(), 3])

        async def fail_once() -> int:
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        inquiry = Inquiry(fail_once)
        with pytest.raises(ZeroDivisionError):
            await inquiry.answer()
        return await inquiry.answer()

    assert asyncio.run(ask()) == 3
