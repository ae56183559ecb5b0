"""Sources keep their place in the checkpoint, which names the files of each batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.land.sources.files.stream import (
    Slot,
    _has_refused_names,
    files_of_batch,
    find_unplaced,
    last_committed,
    place_slots,
    seen_files,
)
from livemart.state.atomic_files import read_file, replace_file
from livemart.storage.location import Location, StoragePlace


def test_a_relation_keeps_its_slot_and_a_later_one_gets_its_own(
    checkpoint: Path | Location,
) -> None:
    offsets = checkpoint / "offsets"
    _write(offsets, "0", '{"offset":1}', '{"logOffset":0}', first='v1\n{"batchTimestampMs":1}')

    first = place_slots(checkpoint, {"s.a": "a/*.csv", "s.b": "a/*.csv"})
    second = place_slots(checkpoint, {"s.a": "a/*.csv", "s.b": "b/*.csv", "s.c": "a/*.csv"})

    assert first == [Slot("a/*.csv", ("s.a", "s.b"))]
    assert second == [
        Slot("a/*.csv", ("s.a",)),
        Slot("b/*.csv", ("s.b",)),
        Slot("a/*.csv", ("s.c",)),
    ]
    assert read_file(offsets / "0").decode().splitlines()[2:] == [
        '{"offset":1}',
        '{"logOffset":0}',
        "-",
        "-",
    ]


@pytest.fixture(params=["disk", "bucket"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Location:
    place: Location = request.getfixturevalue("memory_place")
    return tmp_path if request.param == "disk" else place


def test_the_files_of_a_batch_come_from_the_log_compacted_or_not(
    checkpoint: Path | Location,
) -> None:
    slots = [Slot("a/*", ("s.a",)), Slot("b/*", ("s.b", "s.c"))]
    _write(checkpoint, "offsets/3", '{"offset":1}', '{"logOffset":8}', "-")
    _write(checkpoint, "offsets/4", '{"offset":2}', '{"logOffset":10}', '{"logOffset":0}')
    entries = [
        json.dumps({"path": f"file:///l/a/f%20{step}", "timestamp": 1, "batchId": step})
        for step in range(11)
    ]
    _write(checkpoint, "sources/1/9.compact", *entries[:10], first="v1")
    _write(checkpoint, "sources/1/10", entries[10], first="v1")
    entry = json.dumps({"path": "file:///l/b/x", "timestamp": 1, "batchId": 0})
    _write(checkpoint, "sources/2/0", entry, first="v1")

    actual = files_of_batch(checkpoint, 4, slots)
    seen = {path.name for path in seen_files(checkpoint, 1)}

    assert actual == {
        "s.a": (Path("/l/a/f 10"), Path("/l/a/f 9")),
        "s.b": (Path("/l/b/x"),),
        "s.c": (Path("/l/b/x"),),
    }
    assert seen == {f"f {step}" for step in range(11)}
    with pytest.raises(StateError, match="CHECKPOINT_TORN"):
        files_of_batch(checkpoint, 6, slots)


def test_a_relation_without_a_slot_for_its_path_is_unplaced(tmp_path: Path) -> None:
    place_slots(tmp_path, {"s.a": "a/*.csv", "s.b": "b/*.csv"})

    unplaced = find_unplaced(tmp_path, {"s.a": "a/*.csv", "s.b": "c/*.csv", "s.c": "a/*.csv"})

    assert unplaced == ["s.b", "s.c"]


def test_the_last_committed_batch_is_the_highest_number(tmp_path: Path) -> None:
    assert last_committed(tmp_path) == -1
    (tmp_path / "commits").mkdir()
    for name in ("9", "10", ".10.crc"):
        (tmp_path / "commits" / name).touch()

    assert last_committed(tmp_path) == 10


def _write(root: StoragePlace, name: str, *lines: str, first: str = 'v1\n{"conf":{}}') -> None:
    replace_file(root / name, "\n".join([first, *lines]))


def test_a_name_with_a_colon_is_seen_wherever_a_glob_would_look(tmp_path: Path) -> None:
    for name in ("eu/day/1.csv", "eu/day/deep/at 10:30.csv", "us/.10:30/1.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    patterns = (
        "at 9:00/*.csv",
        "eu/*.csv",
        "eu/*/*.csv",
        "eu/*/*/*.csv",
        "us/*.csv",
        "*.csv",
        "*/*.csv",
        "as/*",
    )

    refused = [it for it in patterns if _has_refused_names(tmp_path, it)]

    assert refused == ["at 9:00/*.csv", "eu/*/*/*.csv", "us/*.csv", "*/*.csv"]
