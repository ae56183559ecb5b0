"""An address may be wrong so often a minute, whatever the others do."""

from __future__ import annotations

from livemart.serve.auth.attempts import Attempts
from livemart.serve.http import quota


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_too_many_is_refused_until_time_has_passed_and_costs_no_other_address() -> None:
    clock = Clock()
    wrong = Attempts(3, clock=clock)

    assert [wrong.is_one_too_many("a") for _ in range(5)] == [False, False, False, True, True]
    assert not wrong.is_one_too_many("b")
    clock.now += 19.0
    assert wrong.is_one_too_many("a")
    # A third of a minute is one attempt of three; what is refused takes nothing from it.
    clock.now += 20.0
    assert [wrong.is_one_too_many("a") for _ in range(2)] == [False, True]
    clock.now += 3_600.0
    assert [wrong.is_one_too_many("a") for _ in range(4)] == [False, False, False, True]


def test_only_the_addresses_that_tried_last_are_kept() -> None:
    wrong = Attempts(1, clock=Clock())
    assert not wrong.is_one_too_many("first")
    for number in range(quota._KEPT - 1):
        wrong.is_one_too_many(str(number))
    assert wrong.is_one_too_many("first")

    for number in range(quota._KEPT):
        wrong.is_one_too_many(f"more {number}")

    assert not wrong.is_one_too_many("first")
