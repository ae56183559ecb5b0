"""A file is handed over whole, once, and leaves nothing behind if it cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from livemart.land.hand_over import hand_over, hand_over_copy


def test_a_file_appears_whole_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[str], bytes]] = []
    rename = Path.rename

    def watched(draft: Path, path: Path) -> Path:
        # As a reader sees the folder just before.
        seen.append((sorted(os.listdir(tmp_path / "orders")), draft.read_bytes()))
        return rename(draft, path)

    monkeypatch.setattr(Path, "rename", watched)

    path = hand_over(tmp_path / "orders", "1.jsonl", b'{"a": 1}\n')

    [(names, content)] = seen
    assert [name[0] for name in names] == ["."]
    assert content == path.read_bytes() == b'{"a": 1}\n'
    assert os.listdir(tmp_path / "orders") == ["1.jsonl"]


def test_a_name_is_used_once(tmp_path: Path) -> None:
    hand_over(tmp_path, "1.jsonl", b"first")

    with pytest.raises(FileExistsError, match=r"1\.jsonl: a file of this name"):
        hand_over(tmp_path, "1.jsonl", b"second")

    assert (tmp_path / "1.jsonl").read_bytes() == b"first"


@pytest.mark.parametrize("name", [".hidden", "_kept", "orders/1.jsonl", "../1.jsonl", ""])
def test_what_landing_would_not_find_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither"):
        hand_over(tmp_path / "landing", name, b"")
    if "/" not in name:
        with pytest.raises(ValueError, match="neither"):
            hand_over_copy(tmp_path / "landing", f"orders/{name}", tmp_path / "file")

    assert not (tmp_path / "landing").exists()


def test_a_disk_that_is_full_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space left"):
        hand_over(tmp_path, "1.jsonl", b"first")

    assert os.listdir(tmp_path) == []
