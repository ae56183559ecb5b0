"""`up` without Spark: a stand-in for the pipeline; signals, order and exit code are real."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.waits import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
UP = """
import sys
from contextlib import contextmanager
from types import SimpleNamespace
import livemart.run.pipeline as pipeline, livemart.run.runtime as runtime
import livemart.run.stream as stream
from livemart.cli.commands import cli
from livemart.serve import server

class Pipeline:
    def __init__(self, runtime, watcher, *, stop, **named):
        self.stop = stop

class Stream:
    def __init__(self, pipeline):
        self.pipeline = pipeline
    def run(self, every):
        print("streams", flush=True)
        self.pipeline.stop.wait()
        print("stream ended", flush=True)
        return pipeline.RunOutcome()

@contextmanager
def open_runtime(settings, watcher, **named):
    try:
        yield SimpleNamespace(settings=settings, project=SimpleNamespace(models={}))
    finally:
        print("runtime closed", flush=True)

async def fail(*_, **__): return
runtime.open_runtime, pipeline.Pipeline, stream.Stream = open_runtime, Pipeline, Stream
if {fails}: server._Server.serve = fail
cli(["up", "--port", "0", "--warehouse", sys.argv[1]])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_up_streams_and_serves_until_a_signal_and_ends_both(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The pipeline is a stand-in without Spark; signals, order and exit code are the real ones."""
    command = [sys.executable, "-c", UP.replace("{fails}", "False"), str(tmp_path / "warehouse")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            port = re.findall(r"\d+", process.stderr.readline())[-1]
            assert process.stdout.readline() == "streams\n"
            address = f"http://127.0.0.1:{port}/healthz"
            assert httpx2.get(address, timeout=PATIENCE_S).status_code == 200

            process.send_signal(number)

            rest, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == code
    assert rest == "stream ended\nruntime closed\n"


def test_up_ends_with_its_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UP.replace("{fails}", "True"), str(tmp_path / "warehouse")]

    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S)

    assert answer.returncode == 2
    assert "SERVER_ENDED: the server ended by itself" in answer.stderr
