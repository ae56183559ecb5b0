"""A folder for files of one process is empty at first and gone at last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from livemart.storage.scratch import drop_folder, empty_folder, temporary_folder
from tests.storages import memory_place  # noqa: F401


def test_a_temporary_folder_is_gone_at_the_end_of_its_block_even_after_an_error() -> None:
    with pytest.raises(ValueError, match="found"), temporary_folder("tests") as folder:
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("")
        mode = folder.stat().st_mode & 0o777
        raise ValueError("found")

    assert (mode, folder.exists()) == (0o700, False)


def test_a_folder_of_a_process_is_gone_at_its_end() -> None:
    code = (
        "from livemart.storage.scratch import folder_until_exit\n"
        "folder = folder_until_exit('tests')\n"
        "print(folder, folder.is_dir())"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )

    folder, was_there = answer.stdout.split()
    assert (was_there, Path(folder).exists()) == ("True", False)


def test_an_empty_folder_takes_the_place_of_what_was_left(tmp_path: Path) -> None:
    folder = tmp_path / "staging" / "orders"
    (empty_folder(folder) / "part").write_text("left")

    assert list(empty_folder(folder).iterdir()) == []
    drop_folder(folder)
    drop_folder(folder)
    assert not folder.exists()


def test_a_folder_of_a_bucket_is_dropped_with_all_that_it_holds(
    memory_place: Location,  # noqa: F811
) -> None:
    storage = open_storage(memory_place)
    for name in ("staging/a", "staging/orders/b", "stagings"):
        storage.put(name, b"")

    assert empty_folder(memory_place / "staging") == memory_place / "staging"

    assert storage.names() == ["stagings"]
