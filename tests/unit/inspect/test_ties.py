"""What is stored of rows that tie is right, or it is not, whatever else came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from livemart.inspect.ties import groups_that_tie
from livemart.plan.strategies.ties import Computed

Row = tuple[Any, ...]

# Of member a the first two rows tie; those of b do not.
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
) -> list[Row] | None:
    return groups_that_tie(stored, iter(answers), keys, computed or {})


@pytest.mark.parametrize(
    ("stored", "groups"),
    [
        ([("a", "gold", "north"), ("b", "none", "west")], [("a",), ("b",)]),
        ([("a", "silver", "south"), ("b", "none", "west")], [("a",), ("b",)]),
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
        ([("a", 1, None), ("a", 2, "x"), ("a", 3, "z")], True),
        ([("a", 1, None), ("a", 2, "x"), ("a", 3, "w")], False),
        ([("a", 1, None), ("a", 2, "x"), ("a", 4, "y")], False),
        ([("a", 1, None), ("a", 2, "x")], False),
    ],
)
def test_a_value_of_another_row_occurs_there(stored: list[Row], is_right: bool) -> None:
    assert (judged(stored, BEFORE, {2: "taken"}) is not None) == is_right


@pytest.mark.parametrize(
    ("middle", "kind", "is_right"),
    [(4.0, "made", True), (4.0, "taken", False), (7.0, "made", False), (0.5, "made", False)],
)
def test_a_value_made_of_several_rows_lies_between_right_ones(
    middle: float, kind: Computed, is_right: bool
) -> None:
    stored = [("a", 2, 2.0), ("a", 1, middle), ("a", 3, 6.0)]
    answers = [*TOTALS, [("a", 2, 2.0), ("a", 3, 5.0), ("a", 1, 6.0)]]

    assert (judged(stored, answers, {2: kind}) is not None) == is_right


def test_what_all_answers_agree_in_is_compared_exactly() -> None:
    answers: list[list[Row]] = [[("a", "x", 1)], [("a", "y", 1)]]

    assert judged([("a", "y", 1)], answers, {1: "taken", 2: "made"}) == [("a",)]
    assert judged([("a", "y", 2)], answers, {1: "taken", 2: "made"}) is None


def test_the_last_digits_of_a_double_are_no_difference() -> None:
    assert judged([("a", 0.1 + 0.2)], [[("a", 0.3)]]) == [("a",)]


def test_no_more_answers_are_asked_for_than_are_needed() -> None:
    asked = 0

    def answers(rows: Sequence[Sequence[Row]]) -> Iterator[Sequence[Row]]:
        nonlocal asked
        for number in range(100):
            asked += 1
            yield rows[number % len(rows)]

    assert groups_that_tie([("a", 1)], answers([[("a", 1)], [("a", 2)]]), [0], {}) == [("a",)]
    assert asked == 5
    # What does not tie is not asked for again.
    assert groups_that_tie([("a", 1)], answers([[("a", 2)]]), [0], {}) is None
    assert asked == 10
    # A group of which no answer is the stored one so far is asked for all of them.
    assert groups_that_tie([("a", 3)], answers([[("a", 1)], [("a", 2)]]), [0], {}) is None
    assert asked == 10 + 5 + 7 + 40


def test_without_a_key_all_rows_are_one_group() -> None:
    assert judged([("x", 1)], [[("x", 1)], [("y", 1)]], keys=()) == [()]
