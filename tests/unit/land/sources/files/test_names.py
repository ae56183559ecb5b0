"""A name that is made for a pattern is read by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.land.sources.files.folder import LandingFolder, matches
from livemart.land.sources.files.names import name_for


@pytest.mark.parametrize(
    "pattern",
    [
        *("*", "orders/*.jsonl", "orders/*", "*/*/*.csv", "a/b-*-*.x*", "orders/day=?/*.gz"),
        *("[a-c]*", "[!a]*.json", "x[0-9][0-9]/*", "at 12:30/*.jsonl", "größe/*"),
    ],
)
def test_the_pattern_reads_the_name(tmp_path: Path, pattern: str) -> None:
    folder = LandingFolder(tmp_path)
    path = tmp_path / name_for(pattern, "a-1")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()

    assert [it.place for it in folder.found(pattern)] == [path]
    assert matches(folder.relative(path), pattern)
    assert "a-1" in path.name


@pytest.mark.parametrize("pattern", ["orders.jsonl", "*/orders.jsonl", "orders/a?.jsonl"])
def test_a_pattern_of_fixed_names_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="put a \\* into the last part"):
        name_for(pattern, "a-1")
