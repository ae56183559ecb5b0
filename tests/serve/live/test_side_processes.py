"""A side process reads the newest snapshot, is started again, and ends with the server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from livemart.errors import PublishError
from livemart.serve.live import side_processes
from livemart.serve.live.side_processes import SideProcessError, SideProcesses, _SideProcess
from tests.serve.apps import make_settings, server
from tests.serve.live.side_readings import crash, fail, process_id
from tests.serve.processes import serving
from tests.store.stores import fill_store
from tests.waits import PATIENCE_S, wait_until


@contextmanager
def opened(folder: Path) -> Iterator[SideProcesses]:
    """Open the side processes of a store with one row."""
    url = f"sqlite:///{folder}/serving.db"
    fill_store(url, {"m": pa.table({"id": [1]})}, {"m": ("id",)})
    side = SideProcesses(url)
    try:
        yield side
    finally:
        side.close()


def is_running(process_id: int) -> bool:
    return Path(f"/proc/{process_id}").exists()


# 0.8 s.
def test_one_process_answers_one_question_after_the_other(tmp_path: Path) -> None:
    with opened(tmp_path) as side:
        answer = side.read(process_id, "given", 1)
        with pytest.raises(PublishError, match="away") as caught:
            side.read(fail)
        reader, snapshot_id, given = answer.value
        again = side.read(process_id).value[0]
        was_running = is_running(reader)

    assert (answer.published.snapshot_id, snapshot_id, given) == (1, 1, ("given", 1))
    assert reader == again != os.getpid() and was_running
    # Where it was raised is in the traceback of the server, too.
    assert caught.value.hint == "wait" and "side_readings.py" in "".join(caught.value.__notes__)
    assert not is_running(reader)


# 0.4 s.
def test_an_answer_whose_reader_ends_twice_is_refused_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull, and a stream that begins with all rows; small answers go on."""
    asked: list[object] = []

    def end(self: object, url: str, question: object) -> None:
        asked.append(question)
        raise EOFError

    url = str(make_settings(tmp_path).store_url)
    fill_store(url, {"m": pa.table({"id": range(1_000)})}, {"m": ("id",)})
    monkeypatch.setattr(_SideProcess, "ask", end)
    with server(tmp_path) as (host, port):
        answers = [
            httpx2.get(f"http://{host}:{port}/v1/models/m{rest}", timeout=PATIENCE_S)
            for rest in ("", "/stream?after=0", "?limit=1")
        ]

    assert [answer.status_code for answer in answers] == [503, 503, 200]
    for answer in answers[:2]:
        assert answer.json()["code"] == "READER_ENDED" and int(answer.headers["retry-after"]) > 0
    assert len(asked) == 4


@pytest.mark.extended
def test_a_process_that_ends_is_replaced_but_not_for_the_same_reading_for_ever(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as side, capture_logs() as events:
        first = side.read(process_id).value[0]
        os.kill(first, signal.SIGKILL)
        second = side.read(process_id).value[0]
        with pytest.raises(SideProcessError, match="crash"):
            side.read(crash)
        third = side.read(process_id).value[0]

    assert len({first, second, third}) == 3
    told = [(event["event"], event["exit_code"]) for event in events]
    assert told == [("side_process_ended", code) for code in (-9, 9, 9)]


@pytest.mark.extended
def test_a_process_that_hangs_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = _SideProcess.kill

    def kill_and_be_patient(process: _SideProcess) -> None:
        # The next one needs a moment to start.
        monkeypatch.setattr(side_processes, "_HANGS_AFTER_S", PATIENCE_S)
        kill(process)

    monkeypatch.setattr(_SideProcess, "kill", kill_and_be_patient)
    with opened(tmp_path) as side, capture_logs() as events:
        first = side.read(process_id).value[0]
        os.kill(first, signal.SIGSTOP)
        monkeypatch.setattr(side_processes, "_HANGS_AFTER_S", 0.1)
        second = side.read(process_id).value[0]

    assert first != second
    assert [(event["event"], event["exit_code"]) for event in events] == [
        ("side_process_ended", -9)
    ]


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_the_server_however_that_ends(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "warehouse"
    url = f"sqlite:///{folder}/_livemart/serving.db"
    fill_store(url, {"m": pa.table({"id": range(1_000)})}, {"m": ("id",)})
    with serving(folder) as (process, port, said):
        answer = httpx2.get(f"http://127.0.0.1:{port}/v1/models/m", timeout=PATIENCE_S)
        children = [
            int(child)
            for file in Path(f"/proc/{process.pid}/task").glob("*/children")
            for child in file.read_text().split()
        ]
        process.send_signal(number)
        process.wait(PATIENCE_S)
        wait_until(lambda: not any(map(is_running, children)))

    assert len(answer.json()["rows"]) == 1_000 and len(children) == 1
    assert not [line for line in said if "Traceback" in line]
