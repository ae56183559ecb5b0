"""One line names each missing program, with the command that installs it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.skipped import keep_skips, render_skips

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


def test_a_run_of_many_named_tests_keeps_its_skips_under_a_name_that_a_file_may_have() -> None:
    kept: dict[str, dict[str, int]] = {}
    paths = [f"tests/unit/test_{number}.py" for number in range(100)]
    config: Any = SimpleNamespace(args=paths, cache=SimpleNamespace(set=kept.__setitem__))

    keep_skips(config, [SimpleNamespace(longrepr=("", 1, "Skipped: no disk"))])

    ((place, reasons),) = kept.items()
    assert len(Path(place).name) <= 255
    assert reasons == {"Skipped: no disk": 1}
