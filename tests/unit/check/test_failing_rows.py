from __future__ import annotations

from livemart.check.failing_rows import failing_row


def test_a_long_value_and_a_wide_row_are_cut() -> None:
    line = failing_row([f"c{number}" for number in range(20)], ["x" * 1_000, *["1"] * 19])

    assert line.startswith(f"c0={'x' * 60}\u2026, c1=1")
    assert line.endswith("c11=1, \u2026")


def test_signs_that_a_terminal_obeys_are_written_out() -> None:
    line = failing_row(["a\x1b[2J", "n\u00f8te"], ["line\r\nend", "\u202eleft, \u00e9"])

    assert line == "a\\x1b[2J=line\\r\\nend, n\u00f8te=\\u202eleft, \u00e9"


def test_a_value_that_is_unknown_is_null() -> None:
    assert failing_row(["a", "b"], [None, ""]) == "a=null, b="
