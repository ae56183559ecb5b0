"""A record is as large as those before it were, and the newest count most."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.land.sources.files.record_sizes import RecordSizes
from livemart.state.places import StateFolder


def test_a_record_is_as_large_as_those_before_it_on_average(tmp_path: Path) -> None:
    sizes = RecordSizes(tmp_path)
    assert sizes.mean("s.a") is None

    sizes.add("s.a", 10, 1_000)
    sizes.add("s.a", 30, 1_000)
    # Files without records say nothing of them.
    sizes.add("s.a", 0, 1_000)
    sizes.keep()

    assert sizes.mean("s.a") == RecordSizes(tmp_path).mean("s.a") == 50
    assert RecordSizes(tmp_path).mean("s.b") is None


def test_what_landed_long_ago_is_forgotten(tmp_path: Path) -> None:
    sizes = RecordSizes(tmp_path)

    sizes.add("s.a", 100_000_000, 100_000_000_000)
    sizes.add("s.a", 9_000_000, 900_000_000)

    # A million of the first is left, beside nine of the second.
    assert sizes.mean("s.a") == pytest.approx(190)


def test_sizes_that_cannot_be_read_are_learned_again(tmp_path: Path) -> None:
    path = StateFolder(tmp_path).record_sizes
    path.parent.mkdir(parents=True)
    path.write_text('{"s.a": [1')
    sizes = RecordSizes(tmp_path)
    assert sizes.mean("s.a") is None

    sizes.add("s.a", 1, 7)
    sizes.keep()

    assert RecordSizes(tmp_path).mean("s.a") == 7
