"""Reports stand in columns, and nothing in them commands the terminal."""

from __future__ import annotations

from livemart.inspect.terminal_text import aligned, one_line


def test_cells_stand_below_each_other() -> None:
    assert aligned([("source", "rows"), ("a", "1,000")]) == ["source  rows", "a       1,000"]


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert one_line("a\tb\r\n\x1b[31m\u202e\x7f") == r"a\tb\r\n\x1b[31m\x202e\x7f"
