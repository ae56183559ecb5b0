"""A runner's Python alone dies: its JVM may write on, and a lease in a bucket outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.state.lease import break_lease, read_lease
from livemart.state.lock import hold_warehouse, is_held
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from tests.services.bucket import Buckets
from tests.storages import bucket_server, storage_in_bucket  # noqa: F401
from tests.waits import PATIENCE_S

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


_HOLDER = """
import sys
from livemart.state import lease
from livemart.state.lock import hold_warehouse
from livemart.storage.location import Location

lease._RENEWAL_S = 0.1
with hold_warehouse(Location.parse(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


_WRITER = """
import sys
from livemart.state import lease
from livemart.state.lock import hold_warehouse
from livemart.storage.location import Location
from livemart.storage.opening import open_storage

# One second of time, and no thread that looks at it.
lease._LOOK_S = 600.0
lease._TERM = 16 * lease._APART / 30
place = Location.parse(sys.argv[1])
try:
    with hold_warehouse(place):
        print("held", flush=True)
        sys.stdin.readline()
        open_storage(place).put("late", b"")
except Exception as error:
    sys.exit(str(error))
"""


@pytest.fixture
def bucket(
    bucket_server: Buckets,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Location:
    """A place in a new bucket, that this process and those that it starts have access to."""
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    return storage_in_bucket(bucket_server).location


def begun(code: str, place: Location) -> subprocess.Popen[str]:
    """Start a process that runs this code, once it says that it holds the place."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, str(place)]
    runner = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert runner.stdout is not None
    assert runner.stdout.readline() == "held\n"
    return runner


@pytest.mark.extended
def test_a_runner_that_is_paused_beyond_its_lease_writes_nothing_when_it_goes_on(
    bucket: Location,
) -> None:
    with begun(_WRITER, bucket) as paused:
        assert paused.stderr is not None
        paused.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        print(file=paused.stdin, flush=True)
        paused.send_signal(signal.SIGCONT)
        assert paused.wait(PATIENCE_S) == 1
        assert "LEASE_LOST: " in paused.stderr.read()

    assert open_storage(bucket).head("late") is None


@pytest.mark.extended
def test_a_lease_in_a_bucket_ends_its_runner_once_it_is_broken_and_outlives_a_kill(
    bucket: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begun(_HOLDER, bucket) as broken:
        assert f"process {broken.pid} on " in str(break_lease(bucket))
        assert broken.wait(PATIENCE_S) == StateError.exit_code
        assert broken.stderr is not None
        assert "LEASE_LOST: " in broken.stderr.read()
    with begun(_HOLDER, bucket) as killed:
        killed.kill()
    assert read_lease(bucket) is not None
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "there"))
        with pytest.raises(StateError, match=f"RUNNER_LIVES.*process {killed.pid} on "):
            hold_warehouse(bucket).__enter__()
    with hold_warehouse(bucket):
        pass
    assert read_lease(bucket) is None
