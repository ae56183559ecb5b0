"""A micro-batch that is run again has begun when it first did."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from livemart.state.places import StateFolder
from livemart.state.run_starts import run_start

FIRST, LATER = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


def test_a_batch_that_is_run_again_keeps_its_start(tmp_path: Path) -> None:
    assert run_start(tmp_path, "e", 1, FIRST) == FIRST
    assert run_start(tmp_path, "e", 1, LATER) == FIRST
    assert run_start(tmp_path, "e", 2, LATER) == LATER

    StateFolder(tmp_path).run.write_text("torn")
    assert run_start(tmp_path, "e", 2, FIRST) == FIRST
