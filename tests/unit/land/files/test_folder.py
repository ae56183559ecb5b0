from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.land.files.folder import FileIdentity, LandingFolder, read_lines, split_file
from livemart.land.files.manifest import Changed, Manifest, ManifestStore
from livemart.land.files.stream import Slot, files_of_batch, place_slots


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    identity = FileIdentity("orders/a.jsonl", 5, 7, "ab")
    expected = Manifest(
        3,
        datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC),
        {"bronze.orders": 4},
        {"bronze.orders": ("orders/a.jsonl",)},
        {"orders/a.jsonl": identity},
        {"orders/z.jsonl": Changed(identity, ("bronze.orders",))},
    )
    store = ManifestStore(tmp_path, "epoch")

    store.write(expected)

    assert store.read(3) == expected
    assert list(store.newest_first()) == [expected]
    assert store.read(4) is None


def test_only_the_newest_manifests_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.land.files.manifest._KEPT", 3)
    store = ManifestStore(tmp_path, "epoch")

    for batch_id in (0, 1, 3, 5, 6, 70):
        store.write(Manifest(batch_id, datetime(2026, 3, 1, tzinfo=UTC), {}, {}, {}))

    kept = sorted(int(path.stem) for path in (tmp_path / "epoch").iterdir())
    assert kept == [5, 6, 70]


@pytest.mark.parametrize("size", [5, 3 << 20, 70 << 20])
def test_content_of_the_same_size_is_other_content(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.jsonl"
    folder = LandingFolder(tmp_path)
    path.write_bytes(bytes(size))
    before = folder.identify(path)

    for mark, place in {b"x": 0, b"y": size // 2, b"z": size - 1}.items():
        with path.open("r+b") as file:
            file.seek(place)
            file.write(mark * min(2 << 20, size - place))
        after = folder.identify(path)

        assert before is not None and after is not None
        assert not after.is_same_content(before)
        before = after


def test_a_large_file_with_another_time_may_have_other_content_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    folder = LandingFolder(tmp_path)
    with path.open("wb") as file:
        file.truncate(200 << 20)
    before = folder.identify(path)
    assert before is not None

    with path.open("r+b") as file:
        file.seek((3 << 20) - (1 << 19))
        file.write(b"x" * 1_000)
    os.utime(path, ns=(0, before.mtime_ns + 1))
    after = folder.identify(path)

    assert after is not None
    # No block of the digest holds the change.
    assert after.digest == before.digest
    assert not after.is_same_content(before)
    os.utime(path, ns=(0, before.mtime_ns))
    assert folder.identify(path) == before


def test_a_small_file_put_back_from_a_copy_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    before = LandingFolder(tmp_path).identify(path)
    os.utime(path, ns=(0, 7))
    after = LandingFolder(tmp_path).identify(path)

    assert before is not None and after is not None
    assert after.is_same_content(before)


def test_a_torn_manifest_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "epoch").mkdir()
    (tmp_path / "epoch" / "3.json").write_text('{"landed_at": "20')

    with pytest.raises(StateError, match="MANIFEST_TORN"):
        ManifestStore(tmp_path, "epoch").read(3)


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


def test_spans_of_a_file_are_the_file_with_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"line %d %s\n" % (number, b"x" * 1_000) for number in range(20_000)))
    whole = [line for run in read_lines(path) for line in run.lines if line[1]]

    spans = split_file(path, 1 << 20)
    actual = [line for s in spans for run in read_lines(path, s) for line in run.lines if line[1]]

    assert len(spans) > 3
    assert actual == whole


@pytest.mark.parametrize("run_bytes", [8, 13, 1 << 20])
def test_lines_are_the_same_however_the_file_is_cut_into_blocks(
    tmp_path: Path, run_bytes: int
) -> None:
    content = b"\xef\xbb\xbfone\r\n\n" + b"long " * 20 + b"\n\x00\xff\n\nlast"
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "zipped").write_bytes(gzip.compress(content[:20]) + gzip.compress(content[20:]))
    expected = list(enumerate(content[3:].split(b"\n"), 1))

    for name in ("plain", "zipped"):
        runs = read_lines(tmp_path / name, run_bytes=run_bytes)

        assert [line for run in runs for line in run.lines] == expected


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


def _write(root: Path, name: str, *lines: str, first: str = 'v1\n{"conf":{}}') -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([first, *lines]))
