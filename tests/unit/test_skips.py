"""One line names each missing program, with the command that installs it."""

from __future__ import annotations

from tests.skipped import render_skips

_CHROMIUM = "Skipped: Chromium is not installed (apt-get install chromium): its tests did not run"


def test_programs_that_are_missing_are_named_with_their_command() -> None:
    skips = {
        "Skipped: PostgreSQL is not installed (apt-get install postgresql): ...": 300,
        _CHROMIUM: 41,
        "Skipped: no disk can be mounted, so none is full": 2,
    }

    assert render_skips(skips) == (
        "skipped: 300 tests without PostgreSQL, 41 tests without Chromium; to run them: "
        "apt-get install postgresql chromium"
    )


def test_without_a_program_that_is_missing_nothing_is_said() -> None:
    assert render_skips({"Skipped: no disk can be mounted, so none is full": 2}) == ""
