"""A supervised process ends with its supervisor, however that ended."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.waits import PATIENCE_S

PROGRAM = """
import signal, sys, threading
from livemart.cli import tether
tether._LAST_WORD_S = 0.2
if {is_deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
tether.Tether().report_ready()
while True:
    threading.Event().wait(0.1)
"""


@pytest.mark.parametrize(("is_deaf", "code"), [(False, 1), (True, 143)])
def test_a_process_says_that_it_is_ready_and_ends_with_its_supervisor(
    is_deaf: bool, code: int
) -> None:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", PROGRAM.format(is_deaf=is_deaf)]
    with ours, subprocess.Popen(command, stdin=theirs.fileno(), stderr=subprocess.PIPE) as process:
        theirs.close()
        ours.settimeout(PATIENCE_S)
        assert ours.recv(10) == b"r"
        assert process.poll() is None

        ours.close()

        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert said == (b"" if is_deaf else b"asked to end\n")
