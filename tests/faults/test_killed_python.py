"""kill -9 of a runner's Python alone: its JVM may still write, so it has the lock until it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.state.lock import hold_warehouse, is_held

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.processes
_RUNNER = """
import sys
from pathlib import Path
from livemart.settings import load_settings
from livemart.spark.session import open_session
from livemart.state.lock import hold_warehouse

settings = load_settings({"warehouse": sys.argv[1], "memory": "1g"}, environ={})
with hold_warehouse(settings.warehouse) as lock:
    spark = open_session(settings, lock=lock)
    print(spark.sparkContext._gateway.proc.pid, flush=True)
    sys.stdin.read()
"""


def test_a_runner_waits_for_the_jvm_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", _RUNNER, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdout is not None
        jvm = int(runner.stdout.readline())
        # However busy it is with its writes.
        os.kill(jvm, signal.SIGSTOP)
        runner.kill()
    try:
        with monkeypatch.context() as patch:
            patch.setattr("livemart.state.lock._PATIENCE_S", 0.0)

            with pytest.raises(StateError, match="RUNNER_LIVES"):
                hold_warehouse(tmp_path).__enter__()
        is_said_to_live = is_held(tmp_path)
    finally:
        os.kill(jvm, signal.SIGCONT)

    # Its input has ended with its Python, and so it ends by itself.
    monkeypatch.setattr("livemart.state.lock._PATIENCE_S", 600.0)
    with hold_warehouse(tmp_path) as lock:
        assert lock.holder.pid == os.getpid()
    assert not is_said_to_live
