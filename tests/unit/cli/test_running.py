"""A command shows on standard error where it is, and its answer stays alone on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.cli.running import name_unread, reporting
from livemart.land.sources.files.unread import unread_files
from livemart.run.events import StepBegan
from livemart.settings import Settings


def test_a_step_is_shown_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(warehouse=tmp_path, log_format="json")

    with reporting(settings) as report:
        report(StepBegan("reading the project"))

    shown = capsys.readouterr()
    assert shown.out == ""
    assert '"step": "reading the project"' in shown.err


def test_delivered_files_that_no_source_reads_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = unread_files.__module__
    monkeypatch.setattr(f"{module}.unread_files", lambda *_: ["odd/1.jsonl: read by no source"])

    name_unread(Settings(warehouse=tmp_path))

    assert capsys.readouterr() == ("", "odd/1.jsonl: read by no source\n")
