"""State files are whole: the old content or the new one, never a part."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.state.atomic_files import (
    look_at_state_file,
    numbers_of,
    read_state_file,
    replace_file,
    require_state_file,
    write_state_file,
)


def test_a_file_is_written_then_replaced(tmp_path: Path) -> None:
    path = tmp_path / "3.json"

    replace_file(path, "one")
    replace_file(path, "zwei ü")

    assert path.read_text(encoding="utf-8") == "zwei ü"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_write_that_is_cut_off_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "3.json"
    replace_file(path, "old")

    def fail(*_: object) -> None:
        raise OSError("cut off")

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OSError, match="cut off"):
        replace_file(path, "new")

    assert path.read_text() == "old"
    assert numbers_of(tmp_path) == [3]


def test_the_content_is_on_disk_before_it_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    rename = Path.rename
    monkeypatch.setattr(os, "fsync", lambda _: steps.append("fsync"))

    def note(draft: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(draft, target)

    monkeypatch.setattr(Path, "rename", note)

    replace_file(tmp_path / "1.json", "text")

    assert steps == ["fsync", "rename"]


def test_numbers_come_highest_first_and_other_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("2.json", "10.json", "x.json", ".4.json.new", "5.txt"):
        (tmp_path / name).write_text("")

    assert numbers_of(tmp_path) == [10, 2]
    assert numbers_of(tmp_path / "missing") == []


def test_a_state_may_name_a_file_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "3.json"

    write_state_file(path, {"names": ["bon\udcff.sql"]})

    assert read_state_file(path, dict[str, tuple[str, ...]]) == {"names": ("bon\udcff.sql",)}


def test_a_torn_state_is_none_and_one_that_cannot_be_read_now_an_error(tmp_path: Path) -> None:
    path = tmp_path / "3.json"
    missing = read_state_file(path, dict[str, int])
    path.write_text('{"a": 1')
    torn = read_state_file(path, dict[str, int])
    path.unlink()
    path.mkdir()

    assert (missing, torn) == (None, None)
    with pytest.raises(IsADirectoryError):
        read_state_file(path, dict[str, int])
    assert look_at_state_file(path, dict[str, int]) is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [('{"a": 1', "Expecting ',' delimiter"), ('{"a": "x"}', "a: Input should be a valid integer")],
)
def test_a_state_that_must_be_whole_says_on_one_line_what_it_lacks(
    tmp_path: Path, content: str, fault: str
) -> None:
    path = tmp_path / "3.json"
    path.write_text(content)

    with pytest.raises(StateError, match=re.escape(f"MANIFEST_TORN: {path}: {fault}")) as caught:
        require_state_file(path, dict[str, int], hint="restore it")

    assert "\n" not in caught.value.message
