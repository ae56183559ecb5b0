"""The supervisor over processes of a few lines in place of engine and server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pytest

from livemart.cli.supervisor import LONG_LIFE_S, SILENCE_S, START_S, Life, NextStep, next_step
from tests.waits import PATIENCE_S, wait_until

PROGRAM = """
import socket, sys
from datetime import timedelta
from livemart.cli import supervisor
from livemart.cli.exits import interruptible
from livemart.cli.health_probe import HealthProbe
from livemart.cli import health_probe
from livemart.observe.logs import configure_logs

configure_logs("text")
supervisor.SILENCE_S, supervisor.LONGEST_PAUSE_S, supervisor.START_S = 1.0, 0.1, 1e6
health_probe._EVERY_S, supervisor._LAST_WORD_S = 0.1, {last_word_s}
with socket.socket() as taken, interruptible(timedelta(seconds={patience_s})) as interrupts:
    interrupts.install(patient=True)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", 0))
    address = taken.getsockname()
    server = [sys.executable, "-S", "-c", {server!r}, str(address[1])]
    processes = [
        supervisor.SupervisedProcess("server", server, probe=HealthProbe(address)),
        supervisor.SupervisedProcess("engine", [sys.executable, "-S", "-c", {engine!r}]),
    ]
    code = supervisor.supervise(processes, interrupts.stop, interrupts.abandon, {patience})
sys.exit(code)
""".replace("{patience}", "timedelta(seconds={patience_s})")
SERVER = """
import os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()
os.write(0, b"r")
print("server", os.getpid(), flush=True)
while True:
    with listener.accept()[0] as connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
"""
ENGINE = """
import os
os.write(0, b"r")
print("engine", os.getpid(), flush=True)
os.read(0, 1)
"""
FAILS = "import sys; sys.exit({code})"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
RUNNING = Life().begun(100.0)
READY = replace(RUNNING, was_ready=True)


@dataclass
class Supervised:
    """A supervisor that runs, and what its processes print."""

    process: subprocess.Popen[str]

    def next_pid(self, name: str) -> int:
        """Return the process that starts next, which has this name."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        assert line[:1] == [name]
        return int(line[1])

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Send the supervisor signals; return its exit code, and its standard error."""
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.2)
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


@contextmanager
def running(
    server: str = SERVER, engine: str = ENGINE, patience_s: float = 5.0, last_word_s: float = 3.0
) -> Iterator[Supervised]:
    code = PROGRAM.format(
        server=server, engine=engine, patience_s=patience_s, last_word_s=last_word_s
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Supervised(process)
        finally:
            process.kill()


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(") ")[2][0] != "Z"
    return False


def test_a_process_that_is_killed_comes_back_and_the_other_goes_on() -> None:
    with running() as one:
        server, engine = one.next_pid("server"), one.next_pid("engine")

        os.kill(engine, signal.SIGKILL)
        second = one.next_pid("engine")
        assert is_alive(server)

        os.kill(server, signal.SIGKILL)
        another = one.next_pid("server")
        assert is_alive(second)

        code, said = one.end(signal.SIGTERM)
    assert code == 143
    assert "process_ended process=engine signal=9 next_start_s=" in said
    assert "Traceback" not in said
    assert not is_alive(second) and not is_alive(another)


def test_a_server_that_answers_no_more_is_replaced_and_the_engine_goes_on() -> None:
    with running() as one:
        server, engine = one.next_pid("server"), one.next_pid("engine")

        os.kill(server, signal.SIGSTOP)

        assert one.next_pid("server") != server
        assert is_alive(engine)
        assert not is_alive(server)
        code, said = one.end(signal.SIGINT)
    assert code == 130
    assert said.count("process_hangs") == 1


@pytest.mark.extended
def test_an_engine_that_stands_still_is_left_alone_and_ends_with_the_others() -> None:
    with running(patience_s=0.2, last_word_s=0.2) as one:
        _, engine = one.next_pid("server"), one.next_pid("engine")
        os.kill(engine, signal.SIGSTOP)
        time.sleep(0.3)
        assert is_alive(engine)

        code, said = one.end(signal.SIGTERM)
    assert (code, said) == (143, "")
    assert not is_alive(engine)


@pytest.mark.extended
def test_a_process_that_does_not_end_is_killed_in_time_without_a_traceback() -> None:
    with running(DEAF + SERVER, DEAF + ENGINE, patience_s=0.3, last_word_s=0.3) as one:
        pids = one.next_pid("server"), one.next_pid("engine")
        began_at = time.monotonic()

        code, said = one.end(signal.SIGTERM)
    assert (code, said) == (143, "")
    assert 0.6 <= time.monotonic() - began_at < 10
    assert not any(map(is_alive, pids))


def test_the_second_signal_is_passed_on_and_does_not_wait_for_the_patience() -> None:
    """The first is caught by the engine, as by one with a micro-batch under way."""
    engine = (
        "import signal\n"
        "heard = []\n"
        "def hear(*_):\n"
        "    heard.append(1)\n"
        "    if len(heard) == 2: print('gives up', flush=True); os._exit(143)\n"
        "signal.signal(signal.SIGTERM, hear)\n"
    ) + ENGINE.replace("os.read(0, 1)", "while True: signal.pause()")
    with running(engine=engine, patience_s=3_600.0) as one:
        one.next_pid("server"), one.next_pid("engine")
        one.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert one.process.poll() is None

        one.process.send_signal(signal.SIGINT)

        said, _ = one.process.communicate(timeout=PATIENCE_S)
    assert (one.process.returncode, said) == (130, "gives up\n")


def test_both_end_with_a_supervisor_that_is_killed() -> None:
    with running() as one:
        pids = one.next_pid("server"), one.next_pid("engine")

        one.process.kill()

        wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("code", [pytest.param(1, marks=pytest.mark.extended), 2])
def test_an_engine_that_cannot_begin_ends_all_with_its_code(code: int) -> None:
    with running(engine=FAILS.format(code=code)) as one:
        server = one.next_pid("server")

        assert one.end() == (code, "")
    assert not is_alive(server)


def test_no_engine_is_started_beside_a_server_that_cannot_begin() -> None:
    with running(server=FAILS.format(code=2)) as one:
        said, _ = one.process.communicate(timeout=PATIENCE_S)
    assert (one.process.returncode, said) == (2, "")


@pytest.mark.extended
def test_an_engine_does_not_wait_for_a_server_that_was_killed_while_it_started() -> None:
    server = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with running(server=server) as one:
        one.next_pid("engine")
        code, _ = one.end(signal.SIGTERM)
    assert code == 143


def test_a_process_is_started_and_left_alone_however_slow_it_is() -> None:
    assert next_step(Life(), 0.0) is NextStep.START
    assert next_step(RUNNING, 1e6) is NextStep.WAIT
    assert next_step(READY, 1e6) is NextStep.WAIT


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_process_that_ends_by_itself_before_it_was_ready_is_given_up(code: int) -> None:
    assert next_step(RUNNING.ended(101.0, code), 101.0) is NextStep.GIVE_UP


@pytest.mark.parametrize("code", [-9, -11, 143], ids=["kill -9", "a crash", "SIGTERM"])
def test_a_process_that_is_ended_from_outside_is_started_again(code: int) -> None:
    life = RUNNING.ended(101.0, code)

    assert next_step(life, 101.0) is NextStep.WAIT
    assert next_step(life, 102.0) is NextStep.START


@pytest.mark.parametrize("code", [0, 1, 2, -9])
def test_after_the_first_readiness_every_end_is_followed_by_a_start(code: int) -> None:
    life = READY.ended(101.0, code)
    assert next_step(life, 102.0) is NextStep.START

    # Also if the next one is never ready.
    again = life.begun(102.0).ended(103.0, 2)
    assert next_step(again, 103.0) is NextStep.WAIT
    assert next_step(again, 105.0) is NextStep.START


def test_pauses_double_up_to_a_minute_and_begin_again_after_a_long_life() -> None:
    life, pauses = READY, []
    for _ in range(9):
        life = life.begun(0.0).ended(1.0, 1)
        pauses.append(life.pause_s)

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert life.begun(0.0).ended(LONG_LIFE_S, 1).pause_s == 1


def test_a_thousand_short_lives_are_counted_without_an_overflow() -> None:
    assert replace(READY, short_lives=5_000).ended(101.0, 1).pause_s == 60


def test_a_server_that_answers_nobody_is_killed() -> None:
    asked = replace(READY, answered_at=200.0)

    assert next_step(asked, 200.0 + SILENCE_S) is NextStep.WAIT
    assert next_step(asked, 200.1 + SILENCE_S) is NextStep.KILL


def test_a_server_has_longer_for_its_first_answer() -> None:
    starting = Life().begun(100.0, is_asked=True)

    assert next_step(starting, 100.0 + START_S) is NextStep.WAIT
    assert next_step(starting, 100.1 + START_S) is NextStep.KILL
    assert next_step(starting.ready(101.0), 101.1 + SILENCE_S) is NextStep.KILL
