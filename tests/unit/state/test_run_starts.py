"""A micro-batch that is run again has begun when it first did."""

from __future__ import annotations

from datetime import UTC, datetime

from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder
from livemart.state.run_starts import run_start
from livemart.storage.location import StoragePlace

FIRST, LATER = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


def test_a_batch_that_is_run_again_keeps_its_start(place: StoragePlace) -> None:
    assert run_start(place, "e", 1, FIRST) == FIRST
    assert run_start(place, "e", 1, LATER) == FIRST
    assert run_start(place, "e", 2, LATER) == LATER

    replace_file(StateFolder(place).run, "torn")
    assert run_start(place, "e", 2, FIRST) == FIRST
