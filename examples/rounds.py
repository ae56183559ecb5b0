"""What examples with servers share: a command line, and livemart run as an operator would."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.services.maven import NotInstalledError

_ROOT = Path(__file__).resolve().parents[1]
_ROUNDS = 3

# Is given a folder that goes with the process, the dbt project, and how many rounds to do, None for
# all until an interrupt; returns the exit code.
Rounds = Callable[[Path, Path, int | None], int]


def run_example(
    name: str, about: str, project: Path, rounds: Rounds, arguments: Sequence[str] | None = None
) -> int:
    """Run an example; return its exit code, 2 if a server cannot be had.

    Args:
        name: of the module that is run.
        about: its text of help.
        project: folder of its dbt project.
        rounds: what it does.
        arguments: of the command line; those of the process if left out.
    """
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--once", action="store_true", help=f"end after {_ROUNDS} rounds")
    parser.add_argument("--project", type=Path, default=project, help="folder of the dbt project")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=f"{project.name}-") as scratch:
        try:
            return rounds(Path(scratch), options.project, _ROUNDS if options.once else None)
        except NotInstalledError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        except KeyboardInterrupt:
            return 0


@dataclass(frozen=True)
class Livemart:
    """Livemart's commands on a project.

    `folder`: holds the warehouse and the landing folder; `environ`: what the project asks for.
    """

    folder: Path
    project: Path
    environ: Mapping[str, str]

    def __post_init__(self) -> None:
        for path in (self.warehouse, self.landing):
            path.mkdir()

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def run(self, command: str) -> int:
        """Run a command to its end, and return its exit code."""
        places = ["--project-dir", str(self.project), "--warehouse", str(self.warehouse)]
        places += ["--landing", str(self.landing)]
        started = time.monotonic()
        code = subprocess.run(
            [sys.executable, str(_ROOT / "runner.py"), command, *places],
            env={**os.environ, **self.environ},
            check=False,
        ).returncode
        say(f"{command}: exit code {code}, {time.monotonic() - started:.1f} s")
        return code


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
