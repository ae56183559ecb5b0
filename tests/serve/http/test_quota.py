"""A used share is restored evenly, and only recent callers are remembered."""

from __future__ import annotations

import pytest

from livemart.serve.http import quota
from livemart.serve.http.quota import Quota


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_debt_is_paid_evenly_and_costs_nobody_else() -> None:
    clock = Clock()
    rows = Quota(600, clock=clock)

    rows.take("greedy", 900)

    assert (rows.left("greedy"), rows.left("other")) == (-300.0, 600.0)
    assert rows.wait_s("greedy") == pytest.approx(30.1)
    clock.now += 30.2
    assert rows.wait_s("greedy") == 0.0
    clock.now += 3_600.0
    assert rows.left("greedy") == 600.0


def test_who_has_all_again_is_forgotten_and_there_is_an_end_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quota, "_KEPT", 3)
    clock = Clock()
    rows = Quota(60, clock=clock)
    for name in "abcd":
        rows.take(name, 60)

    assert [rows.left(name) for name in "abcd"] == [60.0, 0.0, 0.0, 0.0]

    clock.now += 60.0
    for _ in range(3):
        rows.take("e")

    assert list(rows._lefts) == ["e"]
