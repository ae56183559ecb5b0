"""Fetches the jars of services that tests start, by Maven; each is checked by its hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project_run import ROOT

_FOLDER = Path(__file__).parent
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


class NotInstalledError(Exception):
    """A program or its jars cannot be had on this machine."""


def jars_of(service: str) -> Path:
    """Return the folder with the jars of `<service>.pom.xml`; fetched if they are not there.

    Raises:
        NotInstalledError: there is no Maven, or it does not get the jars.
        ValueError: other files than `<service>.sha256` names.
    """
    lock = (_FOLDER / f"{service}.sha256").read_bytes()
    folder = ROOT / ".cache" / "services" / f"{service}-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.is_dir():
        sys.stderr.write(f"setup: fetching the jars of {service} for the tests (once)\n")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            _resolve(service, Path(scratch))
            _check(Path(scratch), lock.decode())
            # Another process that fetched them at the same time has the same files.
            if not folder.exists():
                shutil.copytree(scratch, f"{scratch}.whole")
                try:
                    os.rename(f"{scratch}.whole", folder)
                except OSError:
                    shutil.rmtree(f"{scratch}.whole")
    return folder


def _resolve(service: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NotInstalledError(f"{service}: Maven is not installed (apt-get install maven)")
    pom = ["--file", str(_FOLDER / f"{service}.pom.xml")]
    given = [_COPY, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    run = subprocess.run(
        [maven, "--quiet", "--batch-mode", *pom, *given], capture_output=True, text=True
    )
    if run.returncode:
        lines = [line for line in (run.stdout + run.stderr).splitlines() if line.strip()]
        raise NotInstalledError(f"{service}: Maven: {(lines or ['no output'])[0]}")


def _check(folder: Path, lock: str) -> None:
    locked = {name: digest for digest, name in map(str.split, lock.splitlines())}
    fetched = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
    }
    if locked != fetched:
        names = sorted(name for name, _ in locked.items() ^ fetched.items())
        raise ValueError(f"{folder.name}: other files than the lock names: {', '.join(names)}")


if __name__ == "__main__":
    try:
        for named in sys.argv[1:]:
            jars_of(named)
    except NotInstalledError as error:
        # The tests that need them say so, and fail where CI=true.
        sys.stderr.write(f"setup: {error}\n")
