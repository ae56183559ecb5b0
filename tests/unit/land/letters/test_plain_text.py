"""Text from records is shown without being obeyed."""

from __future__ import annotations

from livemart.land.letters.plain_text import one_line, plain_lines


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert one_line("a\tb\r\n\x1b[31m\u202e\x7f\x9b") == r"a\tb\r\n\x1b[31m\u202e\x7f\x9b"


def test_lines_stay_where_they_may() -> None:
    assert plain_lines("a\r\nb\u2028\x00c") == "a\\r\nb\\u2028\\x00c"


def test_text_of_any_language_stays_as_it_is() -> None:
    text = "麺処 سلام 😀 <b>&amp;"

    assert (one_line(text), plain_lines(text)) == (text, text)
