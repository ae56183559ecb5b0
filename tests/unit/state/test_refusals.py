from __future__ import annotations

from pathlib import Path

from livemart.state.places import StateFolder
from livemart.state.refusals import ProjectRefusal, clear_refusal, note_refusal, read_refusal

REFUSAL = ProjectRefusal("2026-01-01T12:00:00Z", ("models/orders.sql",), "MODEL_UNREADABLE: no")


def test_the_newest_refusal_is_kept_until_it_is_cleared(tmp_path: Path) -> None:
    assert read_refusal(tmp_path) is None
    note_refusal(tmp_path, ProjectRefusal("2026-01-01T11:00:00Z", (), "older"))
    note_refusal(tmp_path, REFUSAL)
    assert read_refusal(tmp_path) == REFUSAL

    clear_refusal(tmp_path)
    clear_refusal(tmp_path)

    assert read_refusal(tmp_path) is None


def test_a_file_that_nobody_can_read_is_no_refusal(tmp_path: Path) -> None:
    note_refusal(tmp_path, REFUSAL)
    StateFolder(tmp_path).project_refusal.write_text('{"at": 1}')

    assert read_refusal(tmp_path) is None
