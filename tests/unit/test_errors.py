from __future__ import annotations

import pickle

import pytest

from livemart.errors import ConfigError, ConfigErrors, causes, first_lines, nearest


def test_an_error_prints_code_message_and_next_step() -> None:
    error = ConfigError("WRONG_SETTING", "livemart.yml:3: pane: found 0s", hint="write 5m")

    assert str(error) == "WRONG_SETTING: livemart.yml:3: pane: found 0s\n  next: write 5m"


def test_all_mistakes_are_printed_at_once() -> None:
    first, second = ConfigError("A", "a", hint="x"), ConfigError("B", "b", hint="y")

    error = ConfigErrors([first, second])

    assert (error.code, str(error)) == ("A", f"{first}\n{second}")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_next_step_of_neighbours_is_printed_once() -> None:
    steps = [("a", "mend"), ("b", "mend"), ("c", "wait"), ("d", "mend")]
    errors = ConfigErrors([ConfigError("X", name, hint=hint) for name, hint in steps])

    assert str(errors).splitlines() == [
        *("X: a", "X: b", "  next: mend"),
        *("X: c", "  next: wait"),
        *("X: d", "  next: mend"),
    ]


def test_causes_are_what_an_error_was_raised_from() -> None:
    inner, middle, outer = OSError("disk"), RuntimeError("job"), ValueError("model")
    outer.__cause__, middle.__cause__ = middle, inner

    assert list(causes(outer)) == [outer, middle, inner]


@pytest.mark.parametrize(
    ("error", "count", "expected"),
    [
        (ValueError("\n  no number  \nat line 3"), 1, "no number  "),
        (ValueError("one\ntwo\nthree"), 2, "one\ntwo"),
        (RecursionError(), 1, "RecursionError"),
    ],
)
def test_the_first_lines_of_an_error_say_something(
    error: Exception, count: int, expected: str
) -> None:
    assert first_lines(error, count) == expected


def test_the_nearest_word_is_proposed_only_if_it_is_near() -> None:
    assert nearest("refesh", ("refresh", "meta")) == ", did you mean refresh?"
    assert nearest("colour", ("refresh", "meta")) == ""
