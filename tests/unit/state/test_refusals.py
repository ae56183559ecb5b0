from __future__ import annotations

from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder
from livemart.state.refusals import ProjectRefusal, clear_refusal, note_refusal, read_refusal
from livemart.storage.location import StoragePlace

REFUSAL = ProjectRefusal("2026-01-01T12:00:00Z", ("models/orders.sql",), "MODEL_UNREADABLE: no")


def test_the_newest_refusal_is_kept_until_it_is_cleared(place: StoragePlace) -> None:
    assert read_refusal(place) is None
    note_refusal(place, ProjectRefusal("2026-01-01T11:00:00Z", (), "older"))
    note_refusal(place, REFUSAL)
    assert read_refusal(place) == REFUSAL

    clear_refusal(place)
    clear_refusal(place)

    assert read_refusal(place) is None


def test_a_file_that_nobody_can_read_is_no_refusal(place: StoragePlace) -> None:
    note_refusal(place, REFUSAL)
    replace_file(StateFolder(place).project_refusal, '{"at": 1}')

    assert read_refusal(place) is None
