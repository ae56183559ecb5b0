"""Runs suites of tests again and again, and says which tests do not always give the same answer.

Used by `make test-repeat`. The second of five runs is beside a process that burns every core, the
third takes the tests in reversed order, the others are ordinary ones. Each run is one line of
`artifacts/repeat/COMMIT.jsonl`. A run with a line is not repeated, so it goes on where it was cut
off. It belongs to one commit: nothing may be uncommitted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
GATE = ("unit", "serve", "e2e", "spark")
WAYS = ("alone", "beside a busy process", "in reversed order", "alone", "alone")


@dataclass(frozen=True)
class Run:
    """How one run of a suite ended; a line of the file."""

    suite: str
    number: int
    way: str
    seconds: int
    exit_code: int
    failed: list[str]

    def __str__(self) -> str:
        ended = "green" if self.exit_code == 0 else "RED"
        return f"{self.suite}, {self.way}: {ended} after {self.seconds} s"


def main() -> int:
    """Run what is lacking; exit with 1 if a run has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(GATE)}; all if none is named")
    parser.add_argument("--runs", type=int, default=5, help="of each suite (default 5)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if unknown := set(options.suites) - set(GATE):
        parser.error(f"found {', '.join(sorted(unknown))}; suites are {', '.join(GATE)}")
    if changed := _git("status", "--porcelain", "--untracked-files=no"):
        sys.stderr.write(f"uncommitted changes, which no commit would stand for:\n{changed}\n")
        return 2
    log = ROOT / "artifacts" / "repeat" / f"{_git('rev-parse', '--short', 'HEAD')}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    suites = options.suites or GATE
    done = {(run.suite, run.number) for run in _runs(log)}
    for number in range(options.runs):
        for suite in suites:
            if (suite, number) not in done:
                run = _run(suite, number)
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(run)) + "\n")
                _say(str(run))
    runs = [run for run in _runs(log) if run.suite in suites and run.number < options.runs]
    for suite in suites:
        green = sum(run.suite == suite and run.exit_code == 0 for run in runs)
        _say(f"{suite}: {green} of {options.runs} green")
    for test, times in Counter(test for run in runs for test in run.failed).most_common():
        _say(f"failed {times} of {options.runs} times: {test}")
    return 0 if all(run.exit_code == 0 for run in runs) else 1


def _run(suite: str, number: int) -> Run:
    way = WAYS[number % len(WAYS)]
    environ = dict(os.environ)
    if way == "in reversed order":
        environ["LIVEMART_TESTS_REVERSED"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        environ["PYTEST_ADDOPTS"] = f"{environ.get('PYTEST_ADDOPTS', '')} --junit-xml={report}"
        started = time.monotonic()
        with _busy(way == "beside a busy process"):
            code = _make(f"test-{suite}", environ)
        took = time.monotonic() - started
        failed = list(_failed(report)) if report.exists() else []
    return Run(suite, number, way, round(took), code, failed)


def _make(target: str, environ: dict[str, str]) -> int:
    """Run a target, and leave nothing of it running if this process is asked to end."""
    process = subprocess.Popen(["make", target], cwd=ROOT, env=environ, start_new_session=True)
    try:
        return process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _failed(report: Path) -> Iterator[str]:
    """Yield the tests that a report of pytest says have failed."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            yield f"{case.get('classname')}::{case.get('name')}"


@contextmanager
def _busy(is_busy: bool) -> Iterator[None]:
    """Burn every core until the block ends."""
    count = (os.cpu_count() or 1) if is_busy else 0
    # However this process ends, they end with it.
    burn = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _runs(log: Path) -> list[Run]:
    if not log.exists():
        return []
    return [Run(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
