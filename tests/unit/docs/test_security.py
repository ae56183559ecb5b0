"""The table of ASVS names every requirement of levels 1 and 2 once, and tests that there are."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## OWASP ASVS")[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.splitlines()
    if line.startswith("| V")
]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_requirement_has_one_verdict() -> None:
    """The numbers are those of the standard's own CSV, with the level of each."""
    numbers = (Path(__file__).parent / "asvs_5_0_0.txt").read_text().split()[::2]

    judged = [number for ids, *_ in ROWS for number in ids.split()]

    assert sorted(judged) == sorted(numbers)
    assert {verdict for _, verdict, _ in ROWS} == {"yes", "partly", "no", "operator", "n/a"}


def test_a_verdict_names_a_test_or_says_why_there_is_none() -> None:
    for ids, _, reason in ROWS:
        words = TEST.sub("", reason)
        assert TEST.search(reason) or len(words.split()) > 1, ids


def test_every_test_that_the_page_names_is_there() -> None:
    named = TEST.findall(PAGE)

    assert len(named) > 50
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


@cache
def names_in(path: str) -> frozenset[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))
