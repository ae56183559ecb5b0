"""A source is found by its name; files go to it once, a pipe is read no further than is durable."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.errors import ConfigError, SourceError
from livemart.land.ingest import (
    Spool,
    SpoolCounts,
    hand_over_files,
    hand_over_input,
    read_into,
    read_project,
    source_called,
)
from livemart.project.graph import Project, SourceTable
from livemart.settings import Settings
from tests.deliveries import Shop, source
from tests.integration.mini import PROJECT
from tests.waits import wait_until

LINES = source("notes", {"line": "string"}, format="text", path="notes/*.log")
NOTES = source("notes", {"id": "bigint"}, path="notes/*.jsonl")
COLUMNS = {"id": "bigint", "note": "string"}


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
    monkeypatch.setattr("livemart.land.ingest.hand_over_below", refuse)
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
from livemart.land.ingest import Spool, SpoolCounts
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


def spool(tmp_path: Path, record_format: str = "json", **options: Any) -> tuple[Spool, SpoolCounts]:
    counts = SpoolCounts()
    columns = {"line": "bigint"} if record_format == "text" else COLUMNS
    table = source("notes", columns, format=record_format, path=f"{record_format}/*.in")
    return Spool(tmp_path / "landing", table, counts, **options), counts


def files(tmp_path: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((tmp_path / "landing").glob("*/*"))]


def landed(tmp_path: Path, record_format: str) -> tuple[list[tuple[Any, ...]], int]:
    """Land what was handed over; return the rows by origin, and how many letters there are."""
    table = source("notes", COLUMNS, format=record_format, path=f"{record_format}/*.in")
    shop = Shop(None, tmp_path, [table])
    batch = shop.land(0, *sorted(shop.folder.glob("*/*")))
    return shop.rows("notes", "id", "note"), batch.counts["bronze.notes"].dead_letters


def written(record_format: str, rows: list[tuple[int, str]]) -> bytes:
    if record_format == "csv":
        quoted = [(number, note.replace('"', '""')) for number, note in rows]
        return "".join(["id,note\n", *(f'{it},"{note}"\r\n' for it, note in quoted)]).encode()
    records = [{"id": number, "note": note} for number, note in rows]
    if record_format == "array":
        return ("\ufeff " + json.dumps(records, indent=1)).encode()
    return "".join(json.dumps(record) + "\n\n" for record in records).encode()


@pytest.mark.parametrize("record_format", ["json", "csv", "array"])
@pytest.mark.parametrize("seed", range(5))
def test_records_come_out_whole_however_they_come_in(
    tmp_path: Path, record_format: str, seed: int
) -> None:
    chance = random.Random(seed)
    notes = ["", "plain", "a, b", "two\nlines", 'with "quotes"', "[{]}", "größe", "x" * 90]
    rows = [(number, chance.choice(notes)) for number in range(60)]
    content = written(record_format, rows)
    name = "csv" if record_format == "csv" else "json"
    out, counts = spool(tmp_path, name, max_bytes=chance.choice([150, 700, 1 << 20]))
    if record_format == "csv":
        out, counts = spool(tmp_path, name, max_bytes=chance.choice([400, 1 << 20]))

    while content:
        size = chance.randint(1, 200)
        out.write(content[:size])
        content = content[size:]
        if chance.random() < 0.2:
            out.flush()
    out.close()

    assert landed(tmp_path, name) == (sorted(rows, key=str), 0)
    assert counts.records == 60
    assert counts.files == len(files(tmp_path))
    assert out.waiting_since is None


def test_a_line_that_begins_a_file_swallows_none_behind_it(tmp_path: Path) -> None:
    out, counts = spool(tmp_path)
    for text in ('{"id":1}\n', '[INFO] begin {\n{"id":2}\n{"id":3}\n'):
        out.write(text.encode())
        out.flush()

    assert landed(tmp_path, "json") == ([(1, None), (2, None), (3, None)], 1)
    assert counts.records == 4


def test_the_header_behind_blank_lines_is_that_of_every_file(tmp_path: Path) -> None:
    out, counts = spool(tmp_path, "csv")
    for text in ("\n \nid,note\n1,a\n", "2,b\n"):
        out.write(text.encode())
        out.flush()

    assert landed(tmp_path, "csv") == ([(1, "a"), (2, "b")], 0)
    assert counts.records == 2


def test_a_text_of_blanks_is_a_record_like_any_other(tmp_path: Path) -> None:
    table = source("notes", {"line": "string"}, format="text", path="text/*.in")
    counts, shop = SpoolCounts(), Shop(None, tmp_path, [table])
    out = Spool(shop.folder, table, counts)
    for text in ("  \n", "a\n\n \n", "\n"):
        out.write(text.encode())
        out.flush()

    shop.land(0, *sorted(shop.folder.glob("*/*")))

    assert sorted(shop.rows("notes", "line")) == [(" ",), ("  ",), ("a",)]
    assert (counts.records, counts.files) == (3, 2)


def test_what_is_no_whole_line_waits(tmp_path: Path) -> None:
    out, counts = spool(tmp_path)

    out.write(b'{"id":1}\n{"id"')
    out.flush()
    assert files(tmp_path) == [b'{"id":1}\n']
    assert (counts.records, counts.files, counts.size) == (1, 1, 9)
    out.write(b":2}")
    out.flush()
    assert len(files(tmp_path)) == 1
    out.close()

    assert files(tmp_path)[1] == b'{"id":2}'
    assert counts.records == 2


def test_a_line_that_never_ends_is_cut_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    out, _ = spool(tmp_path, max_bytes=100)

    for _ in range(5):
        out.write(b"x" * 30)
    out.write(b"\n")
    out.close()

    assert b"".join(files(tmp_path)) == b"x" * 150 + b"\n"


def test_a_stray_quote_keeps_no_other_row(tmp_path: Path) -> None:
    out, counts = spool(tmp_path, "csv", max_bytes=60)
    rows = [f"{number},plain\n" for number in range(20)]

    for row in ["id,note\n", '98,"open\n', *rows]:
        out.write(row.encode())
    out.close()

    assert landed(tmp_path, "csv") == (sorted([(n, "plain") for n in range(20)], key=str), 1)
    assert counts.records == 21


def test_blanks_alone_make_no_file(tmp_path: Path) -> None:
    out, counts = spool(tmp_path)

    out.write(b"\n \n")
    out.flush()
    out.close()

    assert files(tmp_path) == []
    assert counts == SpoolCounts()


@pytest.mark.parametrize(
    ("record_format", "content", "records", "refused"),
    [
        ("json", b'{"id":1}\n{"id":"x"}\n{broken\n', 3, 2),
        ("csv", b"id,note\n1,a\nx,b\n", 2, 1),
        ("text", b"7\nseven\n\n", 2, 1),
    ],
)
def test_records_are_judged_as_landing_will(
    tmp_path: Path, record_format: str, content: bytes, records: int, refused: int
) -> None:
    out, counts = spool(tmp_path, record_format, judges=True)

    out.write(content)
    out.close()

    assert (counts.records, counts.refused.total()) == (records, refused)
