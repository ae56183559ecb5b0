from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from livemart.errors import StateError
from livemart.spark.connect import connect_settings, connect_url, retry_policy
from livemart.state.lock import hold_warehouse, is_held, who_holds

_HOLD = """
import sys
from pathlib import Path
from livemart.state.lock import hold_warehouse
with hold_warehouse(Path(sys.argv[1])) as lock:
    lock.announce_connect(4711)
    print("held", flush=True)
    sys.stdin.read()
"""

_HOLD_WITH_A_CHILD = """
import signal
import subprocess
import sys
from pathlib import Path
from livemart.state.lock import hold_warehouse
with hold_warehouse(Path(sys.argv[1])) as lock:
    child = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    subprocess.Popen(child, stdout=subprocess.DEVNULL, pass_fds=[lock.descriptor])
    print("held", flush=True)
    if sys.argv[2] == "stays":
        signal.pause()
"""

_START = """
import sys
from pathlib import Path
from livemart.state.lock import hold_warehouse
with hold_warehouse(Path(sys.argv[1])):
    pass
"""


@contextmanager
def _another_runner(warehouse: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _HOLD, str(warehouse)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def left_behind(tmp_path: Path) -> Path:
    """A warehouse whose runner was killed."""
    with _another_runner(tmp_path) as process:
        process.kill()
        process.wait()
    return tmp_path


def test_a_second_runner_is_refused_and_told_who_holds(tmp_path: Path) -> None:
    with _another_runner(tmp_path) as process:
        with pytest.raises(StateError) as caught, hold_warehouse(tmp_path):
            pass

        assert caught.value.code == "RUNNER_LIVES"
        assert f"process {process.pid}" in str(caught.value)
        assert caught.value.exit_code == 2


def test_a_look_never_stands_in_a_runners_way(
    left_behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, codes = fcntl.flock, []

    def flock_while_a_runner_starts(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        command = [sys.executable, "-c", _START, str(left_behind)]
        codes.append(subprocess.run(command).returncode)

    monkeypatch.setattr(fcntl, "flock", flock_while_a_runner_starts)

    looked = is_held(left_behind)

    assert not looked
    assert codes == [0]


def test_looks_at_the_same_time_do_not_take_each_other_for_a_runner(
    left_behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, seen = fcntl.flock, []

    def flock_while_another_looks(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        monkeypatch.setattr(fcntl, "flock", flock)
        seen.append(is_held(left_behind))

    monkeypatch.setattr(fcntl, "flock", flock_while_another_looks)

    seen.append(is_held(left_behind))

    assert seen == [False, False]


def test_a_runner_is_seen_while_it_says_more_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    with hold_warehouse(tmp_path) as lock:

        def flock_a_replaced_file(descriptor: int, kind: int) -> None:
            monkeypatch.setattr(fcntl, "flock", flock)
            lock.announce_connect(4711)
            flock(descriptor, kind)

        monkeypatch.setattr(fcntl, "flock", flock_a_replaced_file)

        assert is_held(tmp_path)
        assert who_holds(tmp_path) == lock.holder


def test_a_runner_that_has_not_said_who_it_is_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_warehouse(tmp_path):
        pass
    file = (tmp_path / "_livemart" / "lock").open("a")
    fcntl.flock(file, fcntl.LOCK_EX)
    monkeypatch.setattr("livemart.state.lock.time.sleep", lambda _: file.close())

    with hold_warehouse(tmp_path) as lock:
        assert who_holds(tmp_path) == lock.holder


def test_a_lock_of_which_nobody_says_that_he_holds_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is held by a runner of a version that says it otherwise."""
    monkeypatch.setattr("livemart.state.lock._PATIENCE_S", 0.0)
    with hold_warehouse(tmp_path):
        pass
    with (tmp_path / "_livemart" / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        with pytest.raises(StateError, match="held by another process") as caught:
            hold_warehouse(tmp_path).__enter__()

    assert caught.value.code == "RUNNER_LIVES"


def test_a_killed_runner_holds_nothing(tmp_path: Path) -> None:
    with _another_runner(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

        assert not is_held(tmp_path)
        with hold_warehouse(tmp_path) as lock:
            assert lock.holder.pid == os.getpid()


@contextmanager
def _runner_with_a_child(warehouse: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a runner whose child has the lock, too, and ends with the input of both."""
    command = [sys.executable, "-c", _HOLD_WITH_A_CHILD, str(warehouse), how]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_what_a_killed_runner_started_holds_the_lock_to_its_own_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _runner_with_a_child(tmp_path, "stays") as process:
        process.kill()
        process.wait()
        assert process.stdin is not None
        with monkeypatch.context() as patch:
            patch.setattr("livemart.state.lock._PATIENCE_S", 0.0)

            with pytest.raises(StateError, match="RUNNER_LIVES"):
                hold_warehouse(tmp_path).__enter__()
        assert not is_held(tmp_path)
        process.stdin.close()
        monkeypatch.setattr("livemart.state.lock._PATIENCE_S", 600.0)

        with hold_warehouse(tmp_path) as lock:
            assert lock.holder.pid == os.getpid()


def test_a_runner_that_ends_well_gives_free_what_its_children_have_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.state.lock._PATIENCE_S", 0.0)
    with _runner_with_a_child(tmp_path, "ends") as process:
        process.wait()

        with hold_warehouse(tmp_path) as lock:
            assert lock.holder.pid == os.getpid()


def test_a_free_warehouse_has_no_holder(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path):
        pass

    assert who_holds(tmp_path) is None
    assert who_holds(tmp_path / "never_used") is None


def test_a_guest_finds_port_and_token_of_the_holder(tmp_path: Path) -> None:
    settings = connect_settings(tmp_path)
    with _another_runner(tmp_path):
        url = connect_url(tmp_path, who_holds(tmp_path))

    token = settings["spark.connect.authenticate.token"]
    assert url == f"sc://localhost:4711/;token={token}"
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"


def test_the_token_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    connect_settings(tmp_path)
    connect_settings(tmp_path)

    mode = (tmp_path / "_livemart" / "connect_token").stat().st_mode

    assert mode & 0o777 == 0o600


def test_a_holder_without_a_server_has_no_url(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path) as lock:
        assert connect_url(tmp_path, lock.holder) is None


class _Unavailable(grpc.RpcError):  # type: ignore[misc]
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


def test_a_joined_runner_is_asked_again_only_while_it_lives(tmp_path: Path) -> None:
    with _another_runner(tmp_path) as process:
        holder = who_holds(tmp_path)
        assert holder is not None
        policy = retry_policy(tmp_path, holder)
        assert policy.can_retry(_Unavailable())
        assert not policy.can_retry(ValueError("wrong SQL"))
        process.kill()
        process.wait()

        with pytest.raises(StateError, match="RUNNER_ENDED") as caught:
            policy.can_retry(_Unavailable())
        assert f"process {process.pid}" in str(caught.value)
        with hold_warehouse(tmp_path), pytest.raises(StateError, match="RUNNER_ENDED"):
            policy.can_retry(_Unavailable())
