"""The identity of a file, and files that are never read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from livemart.errors import SourceError
from livemart.land.sources.files.folder import LandingFolder


@pytest.mark.parametrize("size", [5, 3 << 20, 70 << 20])
def test_content_of_the_same_size_is_other_content(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.jsonl"
    folder = LandingFolder(tmp_path)
    path.write_bytes(bytes(size))
    before = folder.identify(path.name)

    for mark, place in {b"x": 0, b"y": size // 2, b"z": size - 1}.items():
        with path.open("r+b") as file:
            file.seek(place)
            file.write(mark * min(2 << 20, size - place))
        after = folder.identify(path.name)

        assert before is not None and after is not None
        assert not after.is_same_content(before)
        before = after


def test_a_large_file_with_another_time_may_have_other_content_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    folder = LandingFolder(tmp_path)
    with path.open("wb") as file:
        file.truncate(200 << 20)
    before = folder.identify(path.name)
    assert before is not None

    with path.open("r+b") as file:
        file.seek((3 << 20) - (1 << 19))
        file.write(b"x" * 1_000)
    os.utime(path, ns=(0, before.mtime_ns + 1))
    after = folder.identify(path.name)

    assert after is not None
    # No block of the digest holds the change.
    assert after.digest == before.digest
    assert not after.is_same_content(before)
    os.utime(path, ns=(0, before.mtime_ns))
    assert folder.identify(path.name) == before


def test_a_small_file_put_back_from_a_copy_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    before = LandingFolder(tmp_path).identify(path.name)
    os.utime(path, ns=(0, 7))
    after = LandingFolder(tmp_path).identify(path.name)

    assert before is not None and after is not None
    assert after.is_same_content(before)


def test_nothing_outside_the_landing_folder_is_located(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    root = tmp_path / "landing"
    root.mkdir()
    (root / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (root / "inside.jsonl").write_text("{}")
    folder = LandingFolder(root)

    located = [folder.locate(name) for name in ("link.jsonl", "../secret.jsonl", "/etc/passwd")]

    assert located == [None, None, None]
    assert folder.locate("inside.jsonl") == root / "inside.jsonl"


def test_a_file_of_a_batch_below_another_landing_folder_is_refused(tmp_path: Path) -> None:
    folder = LandingFolder(tmp_path / "new")

    with pytest.raises(SourceError, match=r"LANDING_MOVED: .*/old/orders/1.jsonl: .*/new\n"):
        folder.relative(tmp_path / "old" / "orders" / "1.jsonl")
