"""A record is as large as those before it were, and the newest count most."""

from __future__ import annotations

import pytest

from livemart.land.sources.files.record_sizes import RecordSizes
from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


def test_a_record_is_as_large_as_those_before_it_on_average(place: StoragePlace) -> None:
    sizes = RecordSizes(place)
    assert sizes.mean("s.a") is None

    sizes.add("s.a", 10, 1_000)
    sizes.add("s.a", 30, 1_000)
    # Files without records say nothing of them.
    sizes.add("s.a", 0, 1_000)
    sizes.keep()

    assert sizes.mean("s.a") == RecordSizes(place).mean("s.a") == 50
    assert RecordSizes(place).mean("s.b") is None


def test_what_landed_long_ago_is_forgotten(place: StoragePlace) -> None:
    sizes = RecordSizes(place)

    sizes.add("s.a", 100_000_000, 100_000_000_000)
    sizes.add("s.a", 9_000_000, 900_000_000)

    # A million of the first is left, beside nine of the second.
    assert sizes.mean("s.a") == pytest.approx(190)


def test_sizes_that_cannot_be_read_are_learned_again(place: StoragePlace) -> None:
    replace_file(StateFolder(place).record_sizes, '{"s.a": [1')
    sizes = RecordSizes(place)
    assert sizes.mean("s.a") is None

    sizes.add("s.a", 1, 7)
    sizes.keep()

    assert RecordSizes(place).mean("s.a") == 7
