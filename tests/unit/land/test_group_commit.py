"""Many requests become few files; each learns its result, and nothing is stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from livemart.land import group_commit
from livemart.land.group_commit import (
    GroupCommit,
    IngestBusyError,
    IngestReceipt,
    IngestRequest,
    KeyReusedError,
)
from livemart.land.hand_over import hand_over_below
from livemart.land.ingested_keys import IngestedKeys
from tests.deliveries import source

NOTES = source("notes", {"id": "string"}, path="notes/*.jsonl")
OTHERS = source("others", {"id": "string"}, path="others/*.jsonl")


def request(text: str, key: str | None = None, table: object = NOTES) -> IngestRequest:
    return IngestRequest(table, text.encode() + b"\n", 1, text, key)  # type: ignore[arg-type]


@pytest.fixture
def commit(tmp_path: Path) -> Iterator[GroupCommit]:
    commit = GroupCommit(tmp_path, IngestedKeys(tmp_path / "keys", tmp_path), linger=0.2)
    yield commit
    commit.close()


def put(commit: GroupCommit, *requests: IngestRequest) -> list[IngestReceipt]:
    for each in requests:
        commit.put(each)
    return [each.done.result(timeout=30) for each in requests]


def stored(root: Path, name: str = "notes") -> list[str]:
    return [path.read_text() for path in sorted((root / name).glob("*.jsonl"))]


def test_who_comes_together_shares_a_file(commit: GroupCommit, tmp_path: Path) -> None:
    receipts = put(commit, request("a"), request("b"), request("c", table=OTHERS), request("d"))

    assert stored(tmp_path) == ["a\nb\nd\n"]
    assert stored(tmp_path, "others") == ["c\n"]
    assert len({receipt.file for receipt in receipts}) == 2


def test_a_line_of_one_decides_nothing_for_others(commit: GroupCommit, tmp_path: Path) -> None:
    put(commit, request("%PDF-1.7"), request("b"))

    assert stored(tmp_path) == ["\f\n%PDF-1.7\nb\n"]


def test_a_request_that_comes_again_is_stored_once(commit: GroupCommit, tmp_path: Path) -> None:
    together = put(commit, request("a", "k"), request("a", "k"))
    later = put(commit, request("a", "k"))
    commit.close()
    restarted = GroupCommit(tmp_path, IngestedKeys(tmp_path / "keys", tmp_path))
    after = put(restarted, request("a", "k"))
    restarted.close()

    assert [it.is_repeat for it in (*together, *later, *after)] == [False, True, True, True]
    assert len({it.file for it in (*together, *later, *after)}) == 1
    assert stored(tmp_path) == ["a\n"]


def test_a_key_of_other_records_is_refused(commit: GroupCommit, tmp_path: Path) -> None:
    first, second = request("a", "k"), request("b", "k")
    with pytest.raises(KeyReusedError):
        put(commit, first, second)
    with pytest.raises(KeyReusedError):
        put(commit, request("c", "k"))

    assert stored(tmp_path) == ["a\n"]
    # Each source has its own keys.
    assert not put(commit, request("b", "k", OTHERS))[0].is_repeat


def test_a_disk_that_refuses_is_told_and_the_next_request_stored(
    commit: GroupCommit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(group_commit, "hand_over_below", refuse)
        with pytest.raises(OSError, match="No space"):
            put(commit, request("a", "k"))

    assert not put(commit, request("a", "k"))[0].is_repeat
    assert stored(tmp_path) == ["a\n"]


def test_more_than_memory_should_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = Event()

    def slow(folder: Path, name: str, data: bytes) -> None:
        goes_on.wait(30)
        hand_over_below(folder, name, data)

    monkeypatch.setattr(group_commit, "hand_over_below", slow)
    keys = IngestedKeys(tmp_path / "keys", tmp_path)
    commit = GroupCommit(tmp_path, keys, linger=0, max_waiting=10)
    first = request("first")
    commit.put(first)

    with pytest.raises(IngestBusyError):
        commit.put(request("second"))
    goes_on.set()
    first.done.result(timeout=30)
    commit.close()
    assert stored(tmp_path) == ["first\n"]
