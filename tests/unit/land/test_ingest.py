"""A source is found by its name; files go to it once, a pipe is read no further than is durable."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.errors import ConfigError, SourceError
from livemart.land.ingest import (
    hand_over_files,
    hand_over_input,
    read_into,
    read_project,
    source_called,
)
from livemart.land.spool import Spool, SpoolCounts
from livemart.project.graph import Project, SourceTable
from livemart.settings import Settings
from tests.deliveries import source
from tests.integration.mini import PROJECT
from tests.waits import wait_until

LINES = source("notes", {"line": "string"}, format="text", path="notes/*.log")
NOTES = source("notes", {"id": "bigint"}, path="notes/*.jsonl")


def project(*sources: SourceTable) -> Project:
    return cast(Project, SimpleNamespace(sources={str(i): it for i, it in enumerate(sources)}))


def test_a_mistake_in_the_project_is_said_and_not_that_there_is_no_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistakes = [ConfigError("SOURCE_KEY_UNKNOWN", f"{key}: no key", hint="") for key in "ab"]
    monkeypatch.setattr("livemart.land.ingest.Dbt.parse", lambda self: (project(), mistakes))

    with pytest.raises(ConfigError, match=r"(?s)a: no key.*b: no key"):
        read_project(Settings(project_dir=PROJECT))


@pytest.mark.parametrize("name", ["notes", "shop.notes", "bronze.notes"])
def test_a_source_is_called_by_each_of_its_names(name: str) -> None:
    assert source_called(project(NOTES, source("orders")), name) is NOTES
    assert source_called(project(NOTES), name, "json") is NOTES


@pytest.mark.parametrize(
    ("name", "format_name", "message"),
    [
        ("nots", None, "nots: no source of that name, did you mean notes"),
        ("twice", None, "twice: 2 sources of that name"),
        ("notes", "text", "bronze.notes: found format json, not text"),
        ("log", None, "bronze.log: found kind outbox"),
        ("fixed", None, "bronze.fixed: path fixed.jsonl matches only fixed file names"),
    ],
)
def test_a_source_that_cannot_be_handed_records_is_refused(
    name: str, format_name: str | None, message: str
) -> None:
    twice = source("twice")
    known = project(
        NOTES,
        twice,
        replace(twice, source_name="other"),
        source("log", kind="outbox", path=""),
        source("fixed", path="fixed.jsonl"),
    )

    with pytest.raises(ConfigError) as caught:
        source_called(known, name, format_name)

    assert caught.value.code == "SOURCE_NOT_INGESTED"
    assert message in caught.value.message


def test_files_are_handed_over_once_by_their_content(tmp_path: Path) -> None:
    landing, counts = tmp_path / "landing", SpoolCounts()
    (tmp_path / "_ä b.jsonl.gz").write_bytes(gzip.compress(b'{"id":1}\n{"id":"x"}\n'))
    (tmp_path / "b.jsonl").write_bytes(b'{"id":2}\n')
    names = [str(tmp_path / "_ä b.jsonl.gz"), str(tmp_path / "b.jsonl")]

    hand_over_files(landing, NOTES, names, counts, judges=True)
    hand_over_files(landing, NOTES, names, counts, judges=True)
    (tmp_path / "b.jsonl").write_bytes(b'{"id":3}\n')
    hand_over_files(landing, NOTES, names, counts, judges=True)

    assert (counts.files, counts.records, dict(counts.refused)) == (3, 4, {"TYPE_MISMATCH": 1})
    assert len(list(landing.glob("notes/*.jsonl"))) == 3


def test_files_of_a_format_without_lines_are_handed_over(tmp_path: Path) -> None:
    table, counts = source("rows", {"id": "bigint"}, format="parquet", path="rows/*"), SpoolCounts()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")

    hand_over_files(tmp_path / "landing", table, [str(tmp_path / "a.parquet")], counts)

    assert (counts.files, counts.records) == (1, 2)
    with pytest.raises(ConfigError, match="found format parquet, which has no lines"):
        hand_over_input(tmp_path, table, 0, counts, Event(), every=1)


def test_nothing_is_handed_over_if_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id":1}\n')
    names = [str(tmp_path / name) for name in ("a.jsonl", "gone", "gone too")]

    with pytest.raises(SourceError, match=r"gone: No such file.*gone too: No such file") as caught:
        hand_over_files(tmp_path / "landing", NOTES, names, SpoolCounts())

    assert caught.value.code == "SOURCE_FILE_UNREADABLE"
    assert not (tmp_path / "landing").exists()


def test_a_landing_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id":1}\n')

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "landing"))

    monkeypatch.setattr("livemart.land.ingest.hand_over_copy", refuse)
    monkeypatch.setattr("livemart.land.spool.hand_over_below", refuse)
    with pytest.raises(SourceError, match="landing: Permission denied") as caught:
        hand_over_files(tmp_path, NOTES, [str(tmp_path / "a.jsonl")], SpoolCounts())
    assert caught.value.code == "LANDING_UNWRITABLE"
    descriptor = os.open(tmp_path / "a.jsonl", os.O_RDONLY)
    with pytest.raises(SourceError, match="LANDING_UNWRITABLE"):
        hand_over_input(tmp_path, NOTES, descriptor, SpoolCounts(), Event(), every=1)
    os.close(descriptor)


class Reading:
    """A pipe that a thread reads into a spool."""

    def __init__(self, root: Path, every: float = 0.05, max_bytes: int = 1 << 20) -> None:
        self.folder = root / "notes"
        self.out, self.pipe = os.pipe()
        self.stop, self.ended = Event(), list[bool]()
        self.counts = SpoolCounts()
        self.spool = Spool(root, LINES, self.counts, max_bytes=max_bytes)
        self.thread = Thread(target=self._read, args=(every,))
        self.thread.start()

    def _read(self, every: float) -> None:
        self.ended.append(read_into(self.spool, self.out, self.stop, every=every))

    def text(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.folder.glob("*.log")))


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    reading = Reading(tmp_path)
    yield reading
    reading.stop.set()
    reading.thread.join()
    os.close(reading.out)


def test_a_slow_pipe_is_handed_over_in_time_and_at_its_end(reading: Reading) -> None:
    os.write(reading.pipe, b"one\ntw")
    wait_until(lambda: reading.text() == b"one\n")
    os.write(reading.pipe, b"o")
    os.close(reading.pipe)
    reading.thread.join()

    assert reading.text() == b"one\ntwo"
    assert reading.ended == [True]
    assert reading.counts.records == 2


def test_a_stop_hands_over_whole_lines_alone(tmp_path: Path) -> None:
    reading = Reading(tmp_path, every=3600)
    os.write(reading.pipe, b"one\ntwo\nthr")
    wait_until(lambda: reading.spool.waiting_since is not None)
    reading.stop.set()
    reading.thread.join()
    os.close(reading.pipe)
    os.close(reading.out)

    assert reading.text() == b"one\ntwo\n"
    assert reading.ended == [False]


def test_a_file_is_followed_while_it_grows(tmp_path: Path) -> None:
    path, stop, counts = tmp_path / "log", Event(), SpoolCounts()
    path.write_bytes(b"one\n")
    spool = Spool(tmp_path, LINES, counts)
    with path.open("rb") as file:
        thread = Thread(
            target=read_into,
            args=(spool, file.fileno(), stop),
            kwargs={"every": 0.05, "follows": True},
        )
        thread.start()
        wait_until(lambda: counts.records == 1)
        with path.open("ab") as more:
            more.write(b"two\n")
        wait_until(lambda: counts.records == 2)
        stop.set()
        thread.join()


_KILLED = """
import sys
from pathlib import Path
from threading import Event
from livemart.land.spool import Spool, SpoolCounts
from livemart.land.ingest import read_into
from tests.unit.land.test_ingest import LINES
spool = Spool(Path(sys.argv[1]), LINES, SpoolCounts(), max_bytes=5000)
read_into(spool, 0, Event(), every=3600)
"""


# 2 s.
def test_a_killed_reader_leaves_whole_lines_once_and_in_order(tmp_path: Path) -> None:
    lines = [f"line {number}\n".encode() for number in range(200_000)]
    out, pipe = os.pipe()
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdin=out)
    os.close(out)

    def feed() -> None:
        with suppress(BrokenPipeError), os.fdopen(pipe, "wb", buffering=0) as file:
            for line in lines:
                file.write(line)

    thread = Thread(target=feed)
    thread.start()
    folder = tmp_path / "notes"
    wait_until(lambda: len(list(folder.glob("*.log"))) > 20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    thread.join()

    names = sorted(folder.glob("*.log"), key=lambda path: int(path.stem.rsplit("-", 1)[1]))
    text = b"".join(path.read_bytes() for path in names)
    assert text.endswith(b"\n")
    assert b"".join(lines).startswith(text)


def test_a_folder_that_cannot_be_made_is_an_error_and_no_repeat(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id":1}\n')
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / NOTES.arrival.path.split("/")[0]).write_text("a file")

    with pytest.raises(FileExistsError):
        hand_over_files(landing, NOTES, [str(tmp_path / "a.jsonl")], SpoolCounts())
