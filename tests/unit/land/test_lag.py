"""Waiting records were delivered, and belong to no micro-batch yet."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.land.lag import SourceLag, WatchedLags, source_lags
from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.record_sizes import RecordSizes
from livemart.land.sources.files.stream import place_slots
from livemart.land.sources.log_looks import LogLooks
from livemart.state.places import StateFolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def deliver(landing: Path, name: str, minutes: int, size: int) -> Path:
    path = landing / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    at = (NOON + timedelta(minutes=minutes)).timestamp()
    os.utime(path, (at, at))
    return path


def log(path: Path, *files: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [json.dumps({"path": f"file://{file}", "batchId": 0}) for file in files]
    path.write_text("\n".join(["v1", *entries]))


def test_files_that_no_batch_was_given_wait(tmp_path: Path) -> None:
    landing, checkpoint = tmp_path / "landing", StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    (landing / "c").mkdir(parents=True)
    place_slots(checkpoint, {"s.a": "a/*", "s.b": "a/*", "s.c": "c/*"})
    files = [deliver(landing, f"a/{number}", number, 10) for number in range(5)]
    deliver(landing, "a/_draft", 0, 10)
    log(checkpoint / "sources/1/1.compact", *files[:2])
    # Its compacted file has all that was before it.
    log(checkpoint / "sources/1/0", files[4])
    log(checkpoint / "sources/1/2", files[2])
    (checkpoint / "sources/1/.2.crc").touch()

    sizes = RecordSizes(tmp_path)
    sizes.add("s.a", 10, 40)
    sizes.keep()

    lags = source_lags(tmp_path, landing)

    waiting = SourceLag(2, 20, NOON + timedelta(minutes=3))
    assert lags == {
        "s.a": replace(waiting, records=5),
        "s.b": waiting,
        "s.c": SourceLag(records=0),
    }
    assert waiting.waits_s(NOON + timedelta(minutes=5)) == 120
    assert SourceLag().waits_s(NOON) == 0


@pytest.mark.parametrize(("seconds", "year"), [(-62_135_596_801, 1), (253_402_300_800, 9999)])
def test_a_file_from_beyond_the_calendar_waits_since_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, year: int
) -> None:
    checkpoint = StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"s.a": "a/*"})
    deliver(tmp_path, "a/1", 0, 10)
    found = LandingFolder.found
    # Not every file system has such a time.
    monkeypatch.setattr(
        LandingFolder,
        "found",
        lambda *asked: [replace(file, modified_s=seconds) for file in found(*asked)],
    )

    lag = source_lags(tmp_path, tmp_path)["s.a"]

    assert lag.oldest_at is not None
    assert lag.oldest_at.year == year
    assert lag.waits_s(NOON) >= 0


def test_a_folder_that_is_not_there_is_away_and_the_others_are_told(tmp_path: Path) -> None:
    landing, checkpoint = tmp_path / "landing", StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"s.a": "a/*", "s.b": "b/eu/*/*.csv"})
    deliver(landing, "a/1", 0, 10)

    lags = source_lags(tmp_path, landing)

    assert lags["s.a"].files == 1
    assert lags["s.b"] == SourceLag(None, None, away=f"{landing}/b/eu is not there")


def test_records_that_no_batch_was_given_wait_in_a_log(tmp_path: Path) -> None:
    looks = LogLooks(tmp_path, ["s.a", "s.b"])
    ends, after = {"p0": 100, "p1": 50, "p2": 5}, {"p0": 90, "p1": 10, "p2": 5}
    looks.answered(["s.a"], NOON, ends, after, None)
    looks.missed(["s.b"], NOON, "outbox: its end: no route")

    lags = source_lags(tmp_path, None)

    now = NOON + timedelta(minutes=5)
    assert lags["s.a"] == SourceLag(None, None, NOON, 50, {"p0": 10, "p1": 40, "p2": 0}, NOON)
    assert (lags["s.a"].waits_s(now), lags["s.a"].look_age_s(now)) == (300, 300)
    assert lags["s.b"] == SourceLag(None, None, away="outbox: its end: no route", away_since=NOON)
    assert lags["s.b"].look_age_s(now) is None


def test_before_the_first_stream_nothing_is_known(tmp_path: Path) -> None:
    assert source_lags(tmp_path, tmp_path) == {}


def test_a_checkpoint_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    checkpoint = StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"s.a": "a/*"})
    log(checkpoint / "sources/1/0")
    (checkpoint / "sources/1/0").write_text("v1\n{")

    with pytest.raises(StateError, match="CHECKPOINT_TORN"):
        source_lags(tmp_path, tmp_path)


def test_a_scrape_looks_at_most_once_in_a_while() -> None:
    looks: list[int] = []
    now = 0.0

    def read() -> dict[str, SourceLag]:
        looks.append(1)
        if len(looks) == 3:
            raise OSError("away")
        return {"s.a": SourceLag(len(looks))}

    lags = WatchedLags(read, seconds=10, clock=lambda: now)
    seen = []
    for now in (0.0, 9.0, 10.0, 21.0):  # noqa: B007
        seen.append(lags.lags())

    assert seen == [{"s.a": SourceLag(1)}] * 2 + [{"s.a": SourceLag(2)}, {}]
