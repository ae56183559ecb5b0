from __future__ import annotations

import pytest

from scripts.prose import Passage, occurrences, risen, taken_apart


def names_in(text: str) -> list[str]:
    return [name for name, _ in occurrences(Passage(1, text))]


def test_lines_of_code_hold_more_than_a_comment_or_a_docstring() -> None:
    source = '''"""A module
of two lines."""

# A comment.
LIMIT = 3  # Code.
"""Below a field."""

def text() -> str:
    """Return lines."""
    return """one
two
"""
'''

    assert taken_apart(source).lines_of_code == 5


def test_a_file_is_docstrings_comments_and_strings_with_their_lines() -> None:
    source = '''"""Adds."""
# One
# comment.
raise ValueError(
    f"{count} rows "
    'are lost'
)
'''

    assert taken_apart(source).passages == (
        Passage(1, "Adds.", "docstring"),
        Passage(5, "xxxxxxx rows are lost", "string"),
        Passage(2, "One\ncomment.", "comment"),
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The caller is told.", ["told"]),
        (
            "It hangs\non the clock; whoever comes to it lies.",
            ["comes to", "hangs on", "lies", "whoever"],
        ),
        ("A letter stands for a type, a stand-in understands.", []),
        ("Read `what is told anew`, [told](told.md).", ["told"]),
        ("Rows: what is left. What is right.", ["What ..."]),
        ("Two of them.\n\nOf two, one.", ["Of ..."]),
        (">>> told\n'anew'\n\nOnce.", []),
        ("```\nnobody\n```\nSomebody.", []),
        ("| Of a kind | What |", ["Of ...", "What ..."]),
    ],
)
def test_words_are_counted_in_prose_but_not_in_code(text: str, names: list[str]) -> None:
    assert sorted(names_in(text)) == names


def test_a_sentence_ends_at_its_full_stop_its_item_or_its_cell() -> None:
    fifteen = " ".join(["word"] * 15)

    assert names_in(f"{fifteen} {fifteen}.") == []
    assert names_in(f"{fifteen}\n{fifteen} more.") == ["over 30 words"]
    assert names_in(f"{fifteen}.\n{fifteen} more.") == []
    assert names_in(f"{fifteen}\n\n{fifteen} more.") == []
    assert names_in(f"- {fifteen}\n- {fifteen} more.") == []
    assert names_in(f"| {fifteen} | {fifteen} more |") == []


def test_a_thing_is_found_at_its_line() -> None:
    passage = Passage(5, "One.\n\nTwo.\nOf three,\none is told.", "docstring")

    assert list(occurrences(passage)) == [("told", 9), ("Of ...", 8)]


def test_the_first_line_of_a_docstring_is_a_sentence() -> None:
    found = list(occurrences(Passage(2, "Return rows\nof tables.", "docstring")))

    assert found == [("first line is no sentence", 2)]


def test_a_count_may_fall_and_only_those_that_rise_are_named() -> None:
    places = {"anew": ["a.py:1"], "told": ["a.py:2", "b.py:7"], "lies": ["a.py:3"]}

    assert list(risen({"anew": 2, "told": 1, "lies": 1}, places)) == [
        "told: 2, at most 1: a.py:2 b.py:7"
    ]
