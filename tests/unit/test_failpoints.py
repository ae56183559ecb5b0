"""A failpoint kills as a power cut would, at the armed name and pass only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = (
    "from livemart.failpoints import failpoint\n"
    "for name in ('a', 'b', 'a', 'a'):\n"
    "    print(name, flush=True)\n"
    "    failpoint(name)\n"
)


@pytest.mark.parametrize(
    ("armed", "code", "passed"),
    [
        ("", 0, ["a", "b", "a", "a"]),
        ("c", 0, ["a", "b", "a", "a"]),
        ("b", -signal.SIGKILL, ["a", "b"]),
        ("a", -signal.SIGKILL, ["a"]),
        ("a:2", -signal.SIGKILL, ["a", "b", "a"]),
    ],
)
def test_the_armed_pass_kills(armed: str, code: int, passed: list[str]) -> None:
    environ = {**os.environ, "LIVEMART_FAILPOINT": armed}

    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True
    )

    assert (answer.returncode, answer.stdout.split()) == (code, passed)
