"""Stored rows of a tie are judged right or wrong, independent of other results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, permutations
from typing import Any

import pytest

from livemart.inspect.ties import judge_groups
from livemart.plan.strategies.ties import Computed

Row = tuple[Any, ...]

# The first two rows of member a tie; those of b do not.
NEWEST: list[list[Row]] = [
    [("a", "gold", "north"), ("b", "none", "west")],
    [("a", "silver", "south"), ("b", "none", "west")],
]
# Key, id, the value before.
BEFORE: list[list[Row]] = [
    [("a", 1, None), ("a", 2, "x"), ("a", 3, "y")],
    [("a", 1, None), ("a", 3, "x"), ("a", 2, "z")],
]
TOTALS: list[list[Row]] = [
    [("a", 1, 1.0), ("a", 2, 3.0), ("a", 3, 6.0)],
    [("a", 3, 3.0), ("a", 2, 5.0), ("a", 1, 6.0)],
]


def judged(
    stored: Sequence[Row],
    answers: Sequence[Sequence[Row]],
    computed: dict[int, Computed] | None = None,
    keys: Sequence[int] = (0,),
    candidates: Sequence[Row] = (),
) -> list[Row] | str | None:
    """Return the groups that tie, None if one is wrong; of answers that come round and round."""
    court = judge_groups(stored, cycle(answers), lambda: candidates, keys, computed or {})
    return None if court.wrong else "unknown" if court.unknown else list(court.tied)


@pytest.mark.parametrize(
    ("stored", "groups"),
    [
        ([("a", "gold", "north"), ("b", "none", "west")], []),
        ([("a", "silver", "south"), ("b", "none", "west")], [("a",)]),
        # A mixture of two rows that tie is neither of them.
        ([("a", "gold", "south"), ("b", "none", "west")], None),
        ([("a", "bronze", "north"), ("b", "none", "west")], None),
        # Nothing of b ties.
        ([("a", "gold", "north"), ("b", "none", "east")], None),
        ([("a", "gold", "north")], None),
        ([("b", "none", "west")], None),
        ([("a", "gold", "north"), ("a", "silver", "south"), ("b", "none", "west")], None),
        ([("a", "gold", "north"), ("b", "none", "west"), ("c", "none", "west")], None),
    ],
)
def test_a_picked_row_is_one_of_those_that_tie(stored: list[Row], groups: list[Row] | None) -> None:
    assert judged(stored, NEWEST) == groups


@pytest.mark.parametrize(
    ("stored", "is_right"),
    [
        ([("a", 1, None), ("a", 3, "x"), ("a", 2, "z")], True),
        ([("a", 1, None), ("a", 2, "x"), ("a", 3, "z")], False),
        ([("a", 1, None), ("a", 2, "x"), ("a", 3, "w")], False),
        ([("a", 1, None), ("a", 2, "x"), ("a", 4, "y")], False),
        ([("a", 1, None), ("a", 2, "x")], False),
    ],
)
def test_where_all_answers_are_known_it_is_one_of_them(stored: list[Row], is_right: bool) -> None:
    assert (judged(stored, BEFORE, {2: "taken"}) is not None) == is_right


# The running totals of seven rows that tie, behind one that does not.
AMOUNTS = (1, 2, 4, 8, 16, 32, 64)


def running(order: Sequence[int]) -> list[Row]:
    total = 1_000
    rows: list[Row] = [("a", 0, total)]
    for amount in order:
        total += amount
        rows.append(("a", amount, total))
    return [*rows, ("a", 128, total + 128)]


MANY = [running(order) for order in list(permutations(AMOUNTS))[:: 5040 // 60]]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (running((64, 1, 2, 4, 8, 16, 32)), [("a",)]),
        # Rows that do not tie have one right total.
        ([*running((64, 1, 2, 4, 8, 16, 32))[:-1], ("a", 128, 1_200)], None),
        # No order gives more than all, or less than one.
        ([("a", 0, 1_000), ("a", 1, 1_300), *running((64, 2, 4, 8, 16, 32, 1))[2:]], None),
        # A row that is twice there, and one that is not.
        ([*running((64, 1, 2, 4, 8, 16, 32))[:-2], ("a", 1, 1_127), ("a", 128, 1_255)], None),
    ],
)
def test_of_many_orders_what_was_made_lies_between_right_values(
    stored: list[Row], expected: list[Row] | None
) -> None:
    assert judged(stored, MANY, {2: "made"}) == expected


def test_a_row_that_is_picked_of_many_is_a_candidate() -> None:
    answers: list[list[Row]] = [[("a", name)] for name in range(60)]
    candidates = [("a", name) for name in range(100)]

    assert judged([("a", 99)], answers, candidates=candidates) == [("a",)]
    assert judged([("a", 99)], answers) == "unknown"
    assert judged([("a", 99)], answers[:3]) is None


def test_what_all_answers_agree_in_is_compared_exactly() -> None:
    answers: list[list[Row]] = [[("a", "x", 1)], [("a", "y", 1)]]

    assert judged([("a", "y", 1)], answers, {1: "taken", 2: "made"}) == [("a",)]
    assert judged([("a", "y", 2)], answers, {1: "taken", 2: "made"}) is None


def test_the_last_digits_of_a_double_are_no_difference() -> None:
    stored, came_out = 0.1 + 0.2, 0.3

    assert judged([("a", stored)], [[("a", came_out)]]) == []
    assert judged([("a", 0.1 + 0.2 - 0.3)], [[("a", 0.0)]]) == []
    assert judged([("a", float("inf"))], [[("a", 1.0)]]) is None
    assert judged([("a", 1767225601.0)], [[("a", 1767225604.0)]]) is None
    nan = float("nan")
    assert judged([("a", nan, "y")], [[("a", float("nan"), "x")], [("a", nan, "y")]]) == [("a",)]


def test_a_map_is_the_same_in_any_order() -> None:
    assert judged([("a", {"x": 1, "y": 2})], [[("a", {"y": 2, "x": 1})]]) == []


def test_no_more_answers_are_asked_for_than_are_needed() -> None:
    asked = 0

    def answers(rows: Sequence[Sequence[Row]]) -> Iterator[Sequence[Row]]:
        nonlocal asked
        for number in range(100):
            asked += 1
            yield rows[number % len(rows)]

    def tied(stored: Sequence[Row], *rows: Sequence[Row]) -> Sequence[Row]:
        return judge_groups(stored, answers(rows), list, [0], {}).tied

    assert tied([("a", 2)], [("a", 1)], [("a", 2)]) == [("a",)]
    assert asked == 5
    # Rows that do not tie are not requested again.
    assert tied([("a", 1)], [("a", 2)]) == []
    assert asked == 10
    assert tied([("a", 3)], [("a", 1)], [("a", 2)]) == []
    assert asked == 10 + 5 + 8 + 46


def test_without_a_key_all_rows_are_one_group() -> None:
    assert judged([("y", 1)], [[("x", 1)], [("y", 1)]], keys=()) == [()]
