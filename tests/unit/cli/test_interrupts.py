"""The first signal lets a micro-batch finish, the second gives it up; exit codes 130 and 143."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
from datetime import timedelta
from livemart.cli.interrupts import Interrupted, Interrupts

interrupts = Interrupts(timedelta(seconds={patience}), lambda: print("told", flush=True))
with interrupts:
    interrupts.install(patient={patient})
    try:
        for number in {signals}:
            os.kill(os.getpid(), number)
        if {waits}:
            interrupts.stop.wait(60); interrupts.abandon.wait(60)
            import time; time.sleep(60)
        print("finished", interrupts.stop.is_set(), interrupts.abandon.is_set(), flush=True)
    except Interrupted:
        print("raised", flush=True)
sys.exit(interrupts.exit_code)
"""


def run(
    *signals: int, patient: bool = True, patience: float = 60, waits: bool = False
) -> tuple[int, str]:
    code = PROGRAM.format(
        patience=patience, patient=patient, signals=[int(each) for each in signals], waits=waits
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
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


def test_no_signal_no_exit_code() -> None:
    assert run() == (0, "finished False False\n")
