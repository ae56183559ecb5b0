"""Livemart's commands as processes, on a copied project with a warehouse and a landing folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from livemart.state.snapshots import Snapshot, SnapshotLog
from tests.project_run import ROOT, copy_project, hand_over_records
from tests.waits import PATIENCE_S, wait_until

RUNNER = (sys.executable, str(ROOT / "runner.py"))
# A user's terminal: nothing of the tests' own environment but what says where things are.
_INHERITED = (
    *("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR"),
    *("LIVEMART_JARS", "LIVEMART_JVM_OPTIONS", "LIVEMART_OWN_FAULTS"),
)


def terminal_environ() -> dict[str, str]:
    """Return the environment of a user's terminal."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


class Ended(NamedTuple):
    """How a command ended, and all that it said."""

    code: int
    output: str


class Running:
    """A command in a separate process group; its output goes into a file."""

    def __init__(
        self, command: Iterable[str], folder: Path, environ: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                list(command),
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        """Return what it has said."""
        return self._log.read_text(errors="replace")

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; it fails if the command ends before."""

        def holds_or_ended() -> bool:
            assert self.process.poll() is None, self.output()
            return holds()

        wait_until(holds_or_ended)

    def ended(self) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(PATIENCE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return how it ended."""
        self.process.send_signal(number)
        return self.ended()

    def kill(self, *, is_group: bool = True) -> bool:
        """Kill the process, or all that it has started; return False if it was over before."""
        if self.process.poll() is None:
            if is_group:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        return self.ended() == -signal.SIGKILL


@dataclass
class Commands:
    """The folders of an operator and an analyst below `root`; their names need every quoting.

    Args:
        root: an empty folder.
        source: folder of the project; it is copied.
        environ: settings of every command.
        url: of a warehouse in a bucket; one on the disk if it is empty.
    """

    root: Path
    source: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    _started: int = 0

    def __post_init__(self) -> None:
        copy_project(self.source, self.project)
        self.warehouse.mkdir()
        self.landing.mkdir()

    @property
    def project(self) -> Path:
        return self.root / "my project"

    @property
    def warehouse(self) -> Path:
        return self.root / "joe's warehouse"

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def places(self) -> list[str]:
        """The flags that say where everything is."""
        return [
            *("--project-dir", str(self.project)),
            *("--warehouse", self.url or str(self.warehouse)),
            *("--landing", str(self.landing)),
        ]

    def deliver(self, source: str, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Put one file of JSON lines below the landing folder, by rename."""
        hand_over_records(self.landing / source, name, records)

    def newest(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return SnapshotLog(self.warehouse).newest()

    def start(self, *words: str, **environ: str) -> Running:
        """Start a command of livemart."""
        return self._start([*RUNNER, *words, *self.places], words[0], environ)

    def start_dbt(self, *commands: str) -> Running:
        """Evaluate what `env` prints, then run dbt commands until one fails."""
        lines = self.run("env").stdout
        script = " && ".join(['eval "$LINES"', *(f"dbt --no-use-colors {c}" for c in commands)])
        return self._start(["bash", "-c", script], "dbt", {"LINES": lines})

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of livemart to its end."""
        return subprocess.run(
            [*RUNNER, *words, *self.places],
            cwd=self.root,
            env=self._environment({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def dbt(self, *commands: str) -> Ended:
        """Run dbt commands to their end."""
        running = self.start_dbt(*commands)
        return Ended(running.ended(), running.output())

    def _start(self, command: Iterable[str], name: str, environ: Mapping[str, str]) -> Running:
        self._started += 1
        log = self.root / f"{self._started}-{name}.log"
        return Running(command, self.root, self._environment(environ), log)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**terminal_environ(), **self.environ, **more}
