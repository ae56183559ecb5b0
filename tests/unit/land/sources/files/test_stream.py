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
)


def test_a_relation_keeps_its_slot_and_a_later_one_gets_its_own(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{"batchTimestampMs":1}\n{"offset":1}\n{"logOffset":0}')

    first = place_slots(tmp_path, {"s.a": "a/*.csv", "s.b": "a/*.csv"})
    second = place_slots(tmp_path, {"s.a": "a/*.csv", "s.b": "b/*.csv", "s.c": "a/*.csv"})

    assert first == [Slot("a/*.csv", ("s.a", "s.b"))]
    assert second == [
        Slot("a/*.csv", ("s.a",)),
        Slot("b/*.csv", ("s.b",)),
        Slot("a/*.csv", ("s.c",)),
    ]
    assert (offsets / "0").read_text().splitlines()[2:] == [
        '{"offset":1}',
        '{"logOffset":0}',
        "-",
        "-",
    ]


def test_the_files_of_a_batch_come_from_the_log_compacted_or_not(tmp_path: Path) -> None:
    slots = [Slot("a/*", ("s.a",)), Slot("b/*", ("s.b", "s.c"))]
    _write(tmp_path, "offsets/3", '{"offset":1}', '{"logOffset":8}', "-")
    _write(tmp_path, "offsets/4", '{"offset":2}', '{"logOffset":10}', '{"logOffset":0}')
    entries = [
        json.dumps({"path": f"file:///l/a/f%20{step}", "timestamp": 1, "batchId": step})
        for step in range(11)
    ]
    _write(tmp_path, "sources/1/9.compact", *entries[:10], first="v1")
    _write(tmp_path, "sources/1/10", entries[10], first="v1")
    entry = json.dumps({"path": "file:///l/b/x", "timestamp": 1, "batchId": 0})
    _write(tmp_path, "sources/2/0", entry, first="v1")

    actual = files_of_batch(tmp_path, 4, slots)

    assert actual == {
        "s.a": (Path("/l/a/f 10"), Path("/l/a/f 9")),
        "s.b": (Path("/l/b/x"),),
        "s.c": (Path("/l/b/x"),),
    }
    with pytest.raises(StateError, match="CHECKPOINT_TORN"):
        files_of_batch(tmp_path, 6, slots)


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


def _write(root: Path, name: str, *lines: str, first: str = 'v1\n{"conf":{}}') -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([first, *lines]))


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
