"""A disk holds the old content or the new one, whatever happens in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from livemart.storage.local import LocalStorage
from livemart.storage.location import Location


@pytest.fixture
def disk(tmp_path: Path) -> LocalStorage:
    """An empty folder."""
    return LocalStorage(Location.parse(tmp_path))


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_creation_that_is_cut_off_leaves_no_object(
    disk: LocalStorage, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("cut off")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="cut off"):
        disk.create("log/1", b"new")

    assert disk.entries() == [] and disk.head("log/1") is None


@pytest.mark.parametrize("synced", [True, False])
def test_content_is_synced_before_it_has_its_name_if_it_is_asked_for(
    disk: LocalStorage, monkeypatch: pytest.MonkeyPatch, synced: bool
) -> None:
    steps: list[str] = []
    rename = Path.rename

    def note(draft: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(draft, target)

    monkeypatch.setattr(os, "fsync", lambda _: steps.append("fsync"))
    monkeypatch.setattr(Path, "rename", note)

    disk.put("1", b"text", synced=synced)

    assert steps == (["fsync", "rename"] if synced else [])


def test_a_file_made_again_in_its_place_is_another(disk: LocalStorage, tmp_path: Path) -> None:
    disk.put("a", b"{}")
    first = disk.head("a")
    (tmp_path / "a").rename(tmp_path / "kept")
    disk.put("a", b"{}")
    second = disk.head("a")

    assert first is not None and second is not None and first.etag != second.etag


def test_a_disk_needs_no_options(disk: LocalStorage) -> None:
    assert disk.options() == {}
