"""A pipe is read to its end, by time, until told to stop, and never beyond what is durable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from livemart.land.spool import Spool, SpoolCounts
from livemart.land.standard_input import read_into
from tests.deliveries import source
from tests.waits import wait_until

SOURCE = source("notes", {"line": "string"}, format="text", path="notes/*.log")


class Reading:
    """A pipe that a thread reads into a spool."""

    def __init__(self, root: Path, every: float = 0.05, max_bytes: int = 1 << 20) -> None:
        self.folder = root / "notes"
        self.out, self.pipe = os.pipe()
        self.stop, self.ended = Event(), list[bool]()
        self.counts = SpoolCounts()
        self.spool = Spool(root, SOURCE, self.counts, max_bytes=max_bytes)
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
    spool = Spool(tmp_path, SOURCE, counts)
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
from livemart.land.standard_input import read_into
from tests.unit.land.test_standard_input import SOURCE
spool = Spool(Path(sys.argv[1]), SOURCE, SpoolCounts(), max_bytes=5000)
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
