"""Every storage keeps the same promises, whatever becomes of its requests."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.storage.storage import Changed, Missing, Storage, Taken
from tests.storages import SURE_STORAGES
from tests.waits import PATIENCE_S

NAMES = ["b/2", "a/10", "a/9", "a/b/c", "b/%20 #?é\U00020bb7", "a-b", "_delta_log/.1.crc"]


def test_an_object_is_created_once(storage: Storage) -> None:
    storage.create("log/1.json", b"first")

    with pytest.raises(Taken, match=r"log/1\.json"):
        storage.create("log/1.json", b"second")

    assert storage.get("log/1.json") == b"first"
    assert storage.names() == ["log/1.json"]


@pytest.mark.parametrize("storage", SURE_STORAGES, indirect=True)
def test_the_same_bytes_of_another_writer_are_taken_all_the_same(storage: Storage) -> None:
    storage.create("1", b"same")

    with pytest.raises(Taken):
        storage.create("1", b"same")


def test_one_of_many_creators_wins(storage: Storage) -> None:
    start = threading.Barrier(8, timeout=PATIENCE_S)

    def create(number: int) -> bool:
        start.wait(PATIENCE_S)
        try:
            storage.create("log/1.json", b"%d" % number)
        except Taken:
            return False
        return True

    with ThreadPoolExecutor(max_workers=8) as pool:
        has_won = list(pool.map(create, range(8)))

    assert has_won.count(True) == 1
    assert storage.get("log/1.json") == b"%d" % has_won.index(True)
    assert storage.names() == ["log/1.json"]


@pytest.mark.parametrize("synced", [True, False])
def test_a_put_replaces_the_whole_content(storage: Storage, synced: bool) -> None:
    storage.put("a/b", b"a long text", synced=synced)
    first = storage.head("a/b")
    storage.put("a/b", b"short", synced=synced)
    second = storage.head("a/b")
    storage.put("empty", b"", synced=synced)

    assert (storage.get("a/b"), storage.get("empty")) == (b"short", b"")
    assert first is not None and second is not None and first.etag != second.etag


def test_an_object_is_replaced_only_while_it_is_the_one_that_was_read(storage: Storage) -> None:
    storage.put("lease", b"first")
    first = storage.head("lease")
    assert first is not None
    storage.replace_if("lease", b"second", first.etag)
    second = storage.head("lease")
    assert second is not None

    with pytest.raises(Changed, match="lease"):
        storage.replace_if("lease", b"third", first.etag)
    with pytest.raises(Changed):
        storage.replace_if("missing", b"x", first.etag)
    with pytest.raises(Changed):
        storage.replace_if("missing/too", b"x", first.etag)

    assert second.etag != first.etag
    assert storage.get("lease") == b"second"
    assert storage.names() == ["lease"]


def test_an_object_is_copied_to_this_machine(storage: Storage, tmp_path: Path) -> None:
    content = bytes(range(256)) * 40_000
    storage.put("a/b", content)
    first = storage.head("a/b")
    assert first is not None

    storage.download("a/b", tmp_path / "copy", first.etag)

    assert (tmp_path / "copy").read_bytes() == content
    with pytest.raises(Missing, match="a/c"):
        storage.download("a/c", tmp_path / "copy", first.etag)
    storage.put("a/b", content[1:])
    with pytest.raises(Changed, match="a/b"):
        storage.download("a/b", tmp_path / "copy", first.etag)
    storage.upload("a/b", tmp_path / "copy")
    assert storage.get("a/b") == (tmp_path / "copy").read_bytes()


def test_what_does_not_exist_is_missing(storage: Storage) -> None:
    storage.put("a/b", b"")

    assert storage.head("a/c") is None and storage.head("a/b/c") is None
    with pytest.raises(Missing, match="a/c"):
        storage.get("a/c")


def test_an_entry_says_size_and_time(storage: Storage) -> None:
    storage.put("a/b", b"12345")

    entry = storage.head("a/b")

    assert entry is not None and (entry.name, entry.size) == ("a/b", 5)
    assert abs(entry.modified_s - time.time()) < 600
    assert storage.entries("a") == [entry]


def test_a_list_is_sorted_by_whole_names(storage: Storage) -> None:
    for name in NAMES:
        storage.put(name, b"")

    assert storage.names() == sorted(NAMES)
    assert storage.names("a") == ["a/10", "a/9", "a/b/c"]
    assert storage.names("a/1") == storage.names("missing") == []
    assert storage.entries("a/1") == storage.entries("missing") == []


def test_a_list_begins_after_a_name_and_ends_after_so_many(storage: Storage) -> None:
    for number in range(7):
        storage.put(f"log/{number}", b"")

    assert storage.names("log", after="log/3") == ["log/4", "log/5", "log/6"]
    assert storage.names("log", after="log/30", most=1) == ["log/4"]
    assert storage.names(most=7) == [entry.name for entry in storage.entries()]
    assert storage.names("log", after="log/6") == []


def test_the_folders_below_one_are_listed(storage: Storage) -> None:
    for name in NAMES:
        storage.put(name, b"")

    assert storage.folders() == ["_delta_log", "a", "b"]
    assert storage.folders("a") == ["b"]
    assert storage.folders("a/b") == storage.folders("missing") == storage.folders("a-b") == []


def test_a_folder_has_a_storage_of_its_objects(storage: Storage) -> None:
    below = storage.below("mart").below("orders")

    below.create("log/1", b"1")

    assert storage.get("mart/orders/log/1") == below.get("log/1") == b"1"
    assert below.names() == ["log/1"]
    assert below.location == storage.location / "mart" / "orders"


def test_objects_are_removed_and_absent_ones_are_no_error(storage: Storage) -> None:
    for name in ("a/1", "a/2", "b"):
        storage.put(name, b"")

    storage.delete(["a/1", "a/missing", "missing/1", "b"])
    storage.delete(["a/1"])
    storage.delete([])

    assert storage.names() == ["a/2"]


@pytest.mark.parametrize("storage", SURE_STORAGES, indirect=True)
@pytest.mark.parametrize("name", ["t.parquet", "day=2024-01-01 00%3A00/t.parquet"])
def test_pyarrow_reads_an_object_by_its_name(storage: Storage, name: str) -> None:
    rows = pa.table({"id": [1, 2]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    storage.put(name, sink.getvalue().to_pybytes())

    assert pq.ParquetFile(name, filesystem=storage.filesystem()).read() == rows
    with pytest.raises(FileNotFoundError):
        pq.ParquetFile("missing.parquet", filesystem=storage.filesystem())
