"""The first signal lets a micro-batch finish, the second gives it up; exit codes 130 and 143."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from livemart.cli.interrupts import SignalEvent
from tests.waits import PATIENCE_S

PROGRAM = """
import os, signal, sys, threading
from datetime import timedelta
from livemart.cli import interrupts as module
from livemart.cli.interrupts import Interrupted, Interrupts

# No time decides: only signals are asked for.
module._LAST_WORD_S = 3_600
interrupts = Interrupts(timedelta(hours=1), lambda: print("told", flush=True))
with interrupts:
    interrupts.install(patient={patient})
    try:
        for number in {signals}:
            os.kill(os.getpid(), number)
        if {waits}:
            threading.Event().wait()
        print("finished", interrupts.stop.is_set(), interrupts.abandon.is_set(), flush=True)
    except Interrupted:
        print("raised", flush=True)
sys.exit(interrupts.exit_code)
"""


def run(*signals: int, patient: bool = True, waits: bool = False) -> tuple[int, str]:
    code = PROGRAM.format(patient=patient, signals=[int(each) for each in signals], waits=waits)
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    return answer.returncode, answer.stdout


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_for_the_end(number: int, expected: int) -> None:
    assert run(number) == (expected, "told\nfinished True False\n")


def test_outside_a_micro_batch_the_first_signal_ends_the_run() -> None:
    assert run(signal.SIGTERM, patient=False) == (143, "told\nraised\n")


def test_the_second_signal_gives_the_micro_batch_up() -> None:
    assert run(signal.SIGINT, signal.SIGINT) == (130, "told\nfinished True True\n")


def test_the_third_signal_leaves_at_once() -> None:
    assert run(signal.SIGTERM, signal.SIGINT, signal.SIGINT, waits=True) == (143, "told\n")


def test_a_signal_that_another_thread_takes_is_heard() -> None:
    """The kernel may give it to any thread; the main one is not woken by it."""
    program = """
import signal, sys, threading
from datetime import timedelta
from livemart.cli.interrupts import Interrupts

interrupts = Interrupts(timedelta(hours=1))
with interrupts:
    interrupts.install(patient=True)
    other = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), 15))
    threading.Timer(0.5, other.start).start()
    interrupts.stop.wait()
sys.exit(interrupts.exit_code)
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, timeout=PATIENCE_S).returncode == 143


@pytest.mark.parametrize("is_over", [False, True], ids=["in the run", "at the end of the process"])
def test_what_never_ends_is_ended_and_says_where_it_hangs(is_over: bool) -> None:
    program = f"""
import os, sys, threading, time
from datetime import timedelta
from livemart.cli import interrupts as module

def hang():
    time.sleep(10_000)

module._LAST_WORD_S = 0
with module.Interrupts(timedelta(0)) as interrupts:
    interrupts.install(patient=True)
    if {is_over}:
        threading.Thread(target=hang).start()
    os.kill(os.getpid(), 15)
    if not {is_over}:
        hang()
sys.exit(0)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True)
    assert ended.returncode == 143
    assert "in hang" in ended.stderr


def test_an_event_is_set_by_a_handler_in_whatever_its_thread_is_doing() -> None:
    event = SignalEvent()

    assert not event.wait(0.001)
    event.set()
    assert event.wait() and event.is_set()
    event.clear()
    assert not event.is_set()


def test_a_supervised_process_leaves_ctrl_c_to_its_supervisor() -> None:
    program = PROGRAM.replace('print("told", flush=True))', "None, is_supervised=True)")
    code = program.format(patient=True, signals=[int(signal.SIGINT)], waits=False)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (answer.returncode, answer.stdout) == (0, "finished False False\n")


def test_no_signal_no_exit_code() -> None:
    assert run() == (0, "finished False False\n")
