"""`up` without Spark: the engine is a stand-in; server, supervisor, signals and codes are real."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.waits import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PROCESS = """
import os, sys
from contextlib import contextmanager
from types import SimpleNamespace
import livemart.run.pipeline as pipeline, livemart.run.runtime as runtime
import livemart.run.stream as stream
from livemart.cli.commands import cli
from livemart.errors import ConfigError

class Pipeline:
    def __init__(self, runtime, watcher, *, stop, **named):
        self.stop = stop

class Stream:
    def __init__(self, pipeline):
        self.pipeline = pipeline
    def run(self, every):
        print("streams", os.getpid(), every, flush=True)
        self.pipeline.stop.wait()
        print("stream ended", flush=True)
        return pipeline.RunOutcome()

@contextmanager
def open_runtime(settings, watcher, **named):
    if settings.selector == "wrong":
        raise ConfigError("WRONG_SETTING", "selector: found wrong", hint="write another")
    try:
        yield SimpleNamespace(settings=settings, project=SimpleNamespace(models={}))
    finally:
        print("runtime closed", flush=True)

def check_project(settings):
    if settings.target == "wrong":
        raise ConfigError("WRONG_SETTING", "target: found wrong", hint="write another")

runtime.check_project = check_project
runtime.open_runtime, pipeline.Pipeline, stream.Stream = open_runtime, Pipeline, Stream
# The supervisor starts this very program again, in place of `python -P -m livemart`.
sys.executable = __file__.removesuffix(".py")
cli(sys.argv[1:])
"""


@contextmanager
def up(
    folder: Path, words: Sequence[str] = (), *, files: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run `up`; `files`: how many descriptors each of its processes may have."""
    program, starter = folder / "process.py", folder / "process"
    program.write_text(PROCESS, encoding="utf-8")
    # Its first three words are those before the command.
    limit = "" if files is None else f"ulimit -n {files}\n"
    starter.write_text(f'#!/bin/sh\n{limit}shift 3\nexec {sys.executable} {program} "$@"\n')
    starter.chmod(0o755)
    options = ["--port", "0", "--warehouse", str(folder / "warehouse"), *words]
    command = [sys.executable, str(program), "up", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.extended)],
)
def test_up_streams_and_serves_until_a_signal_and_ends_both(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with up(tmp_path, ["--every", "7s"]) as process:
        assert process.stdout is not None and process.stderr is not None
        port = re.findall(r"\d+", process.stderr.readline())[-1]
        streams, pid, every = process.stdout.readline().split()
        assert (streams, every) == ("streams", "0:00:07")
        address = f"http://127.0.0.1:{port}/healthz"
        assert httpx2.get(address, timeout=PATIENCE_S).status_code == 200

        if number == signal.SIGTERM:
            # A death of the engine leaves the server as it is.
            os.kill(int(pid), signal.SIGKILL)
            assert process.stdout.readline().split()[1] not in (pid, str(process.pid))
            assert httpx2.get(address, timeout=PATIENCE_S).status_code == 200
        process.send_signal(number)

        rest, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert rest == "stream ended\nruntime closed\n"
    assert "stopping: finishing the work in progress, for 5s at most" in said
    assert "Traceback" not in said


@pytest.mark.extended
def test_up_ends_with_the_code_of_an_engine_that_is_set_up_wrongly(tmp_path: Path) -> None:
    with up(tmp_path, ["--selector", "wrong"]) as process:
        streamed, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, streamed) == (2, "")
    assert said.count("WRONG_SETTING: selector: found wrong\n  next: write another\n") == 1


def test_up_makes_nothing_for_a_project_with_mistakes(tmp_path: Path) -> None:
    with up(tmp_path, ["--target", "wrong"]) as process:
        streamed, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, streamed) == (2, "")
    assert said == "WRONG_SETTING: target: found wrong\n  next: write another\n"
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.extended
def test_up_starts_no_engine_beside_a_server_that_is_set_up_wrongly(tmp_path: Path) -> None:
    with up(tmp_path, ["--host", "0.0.0.0"]) as process:
        streamed, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, streamed) == (2, "")
    assert said.startswith("TOKENS_NEEDED: host: found 0.0.0.0, ")
    assert said.count("\n") == 2


def test_up_names_an_address_that_is_taken_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with up(tmp_path, ["--port", str(port)]) as process:
            streamed, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, streamed) == (2, "")
    assert said.startswith(f"ADDRESS_TAKEN: host, port: found 127.0.0.1:{port}: ")
    assert not (tmp_path / "warehouse").exists()
