"""Which end of a moved window's slice belongs to it, for every way to write the comparison."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import pytest
from sqlglot import exp, parse_one

from livemart.plan.relations.clock import ClockBound, bounds_of, clock_value

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


def bounds(condition: str) -> list[ClockBound]:
    """Return the bounds of a condition in which `clock` stands for the clock's value."""

    def marked(node: exp.Expr) -> exp.Expr:
        return clock_value(3, "as_of") if node == exp.column("clock") else node

    found = bounds_of(parse_one(condition, dialect="spark").transform(marked))
    assert found is not None
    return found


@pytest.mark.parametrize(("sign", "is_turned"), list(product(_OPERATORS, (False, True))))
def test_a_row_is_in_the_slice_exactly_if_it_enters_or_leaves(sign: str, is_turned: bool) -> None:
    compare = _OPERATORS[sign]
    (bound,) = bounds(f"clock {sign} at" if is_turned else f"at {sign} clock")

    for before, after, at in product(range(4), repeat=3):
        low, high = sorted((before, after))
        in_slice = low <= at < high if bound.has_lower_end else low < at <= high
        sides = [(clock, at) if is_turned else (at, clock) for clock in (before, after)]
        is_moved = compare(*sides[0]) != compare(*sides[1])
        assert is_moved == in_slice


@pytest.mark.parametrize("sign", list(_OPERATORS))
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_window_lies_on_the_side_of_the_threshold_that_the_condition_says(
    sign: str, is_turned: bool
) -> None:
    (bound,) = bounds(f"clock {sign} at" if is_turned else f"at {sign} clock")

    is_after = _OPERATORS[sign](0, 1) if is_turned else _OPERATORS[sign](1, 0)
    assert bound.is_lower == is_after


def test_a_clock_between_two_times_enters_with_the_first_and_leaves_with_the_second() -> None:
    first, last = bounds("clock between at and until")

    # at <= clock: of a move from 1 to 3, at 3 enters and 1 was in before; until >= clock: 1 leaves.
    assert (first.has_lower_end, first.is_lower) == (False, False)
    assert (last.has_lower_end, last.is_lower) == (True, True)


def test_between_includes_both_of_its_own_ends() -> None:
    low, high = bounds("at between clock - interval 1 hour and clock")

    assert (low.has_lower_end, high.has_lower_end) == (True, False)
