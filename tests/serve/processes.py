"""`livemart serve` as a separate process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waits import PATIENCE_S, wait_until

ROOT = Path(__file__).resolve().parents[2]
# The command itself; only that a slow machine never brings it to cut off an answer under way.
PATIENT = """
import sys
from livemart.cli.commands import cli
from livemart.serve import server

server._PATIENCE_S = 600
cli(sys.argv[1:], prog_name="livemart")
"""


@contextmanager
def serving(
    warehouse: Path, *flags: str, program: str = PATIENT
) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """Run `livemart serve` and yield the process, its port and the lines it said so far."""
    command = [sys.executable, "-c", program, "serve", "--warehouse", str(warehouse)]
    process = subprocess.Popen(
        [*command, "--port", "0", *flags],
        stderr=subprocess.PIPE,
        text=True,
        cwd=warehouse.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stderr is not None
    said: list[str] = []
    drain = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    drain.start()
    try:
        wait_until(lambda: bool(said) or not drain.is_alive())
        found = re.search(r"serving http://127\.0\.0\.1:(\d+)/", "".join(said[:1]))
        assert found is not None, said
        yield process, int(found[1]), said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        drain.join(PATIENCE_S)
        process.stderr.close()
