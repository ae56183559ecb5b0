"""One item of each line is taken in a round; an empty line is forgotten."""

from __future__ import annotations

from livemart.serve.shares.round_robin import RoundRobin


def test_lines_take_turns_and_each_keeps_its_order() -> None:
    waiting = RoundRobin[str]()
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        waiting.put(item[0], item)
    taken = [waiting.take() for _ in range(3)]
    # This one comes behind those that wait, whether or not its line had just a turn.
    waiting.put("b", "b2")

    assert taken == ["a1", "b1", "c1"]
    assert [waiting.take() for _ in range(len(waiting))] == ["a2", "c2", "b2", "a3"]


def test_a_line_of_which_none_waits_takes_no_memory() -> None:
    waiting = RoundRobin[int]()
    for number in range(1_000):
        waiting.put(number, number)
        assert waiting.take() == number

    assert (len(waiting), waiting._lines) == (0, {})
    assert waiting.take() is None


def test_a_line_may_be_passed_over_and_keeps_its_place() -> None:
    waiting = RoundRobin[str]()
    for item in ("a1", "b1", "b2"):
        waiting.put(item[0], item)

    taken = [waiting.take(but={"a"}) for _ in range(3)]

    assert taken == ["b1", "b2", None]
    assert waiting.take() == "a1"
