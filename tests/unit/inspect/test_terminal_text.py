"""Reports are aligned in columns."""

from __future__ import annotations

from livemart.inspect.terminal_text import aligned


def test_cells_stand_below_each_other() -> None:
    assert aligned([("source", "rows"), ("a", "1,000")]) == ["source  rows", "a       1,000"]
