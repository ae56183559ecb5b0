"""Builds the first weeks of flights, refreshes week by week, then verifies: all by the runner."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
ROOT = PROJECT.parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from examples.flights.deliver import CACHE, LAST_WEEK, Delivery, DeliveryError, fetch, week_ends_at  # noqa: E402


class Run:
    """One warehouse and landing folder, driven by `python runner.py` as an operator would."""

    def __init__(
        self, delivery: Delivery, landing: Path, warehouse: Path, project: Path = PROJECT
    ) -> None:
        self._delivery = delivery
        self._project = project
        self._landing = landing
        self._warehouse = warehouse

    def build(self, weeks: int) -> int:
        """Deliver the dimensions and weeks 1 to `weeks`, then build; return the exit code."""
        self._delivery.deliver_dimensions()
        flights = sum(self._delivery.deliver_week(week) for week in range(1, weeks + 1))
        return self._step(f"build    weeks 1-{weeks}, {flights} flights", "build", weeks)

    def refresh(self, week: int) -> int:
        """Deliver one week, then refresh as of its end; return the exit code."""
        flights = self._delivery.deliver_week(week)
        return self._step(f"refresh  week {week}, {flights} flights", "refresh", week)

    def verify(self) -> int:
        """Compare every model with its batch; return the exit code, 1 on a difference."""
        return self._step("verify", "verify", None)

    def _step(self, title: str, command: str, week: int | None) -> int:
        arguments = [sys.executable, str(ROOT / "runner.py"), command]
        arguments += ["--project-dir", str(self._project)]
        arguments += ["--warehouse", str(self._warehouse), "--landing", str(self._landing)]
        if week is not None:
            # The week's last instant: `as_of` is the end of the pane that holds it.
            last = week_ends_at(week) - timedelta(microseconds=1)
            arguments += ["--as-of", last.isoformat()]
        _say(title)
        started = time.monotonic()
        code = subprocess.run(arguments, check=False).returncode
        _say(f"{title}: exit code {code}, {time.monotonic() - started:.1f} s")
        return code


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(
    landing: Path,
    warehouse: Path,
    *,
    weeks: int,
    first: int,
    cache: Path = CACHE,
    project: Path = PROJECT,
) -> int:
    """Build weeks 1 to `first`, refresh up to `weeks`, verify.

    Returns:
        The exit code of the first command that failed, else that of `verify`.

    Raises:
        DeliveryError: the data cannot be had, or the landing folder holds something else.
    """
    steps = Run(Delivery(landing, fetch(cache)), landing, warehouse, project)
    if code := steps.build(first):
        return code
    for week in range(first + 1, weeks + 1):
        if code := steps.refresh(week):
            return code
    return steps.verify()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; exit code of `verify`."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--weeks", type=int, default=12, help="weeks in all (default 12)")
    parser.add_argument("--first", type=int, default=2, help="weeks of the build (default 2)")
    parser.add_argument(
        "--warehouse", type=Path, help="kept afterwards; a temporary folder if absent"
    )
    parser.add_argument(
        "--landing", type=Path, help="kept afterwards; a temporary folder if absent"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the download is kept")
    options = parser.parse_args(arguments)
    if not 1 <= options.first <= options.weeks <= LAST_WEEK:
        parser.error(f"--first and --weeks: found {options.first} and {options.weeks}")
    with tempfile.TemporaryDirectory(prefix="flights-") as scratch:
        landing = (options.landing or Path(scratch) / "landing").absolute()
        warehouse = (options.warehouse or Path(scratch) / "warehouse").absolute()
        try:
            return run(
                landing, warehouse, weeks=options.weeks, first=options.first, cache=options.cache
            )
        except DeliveryError as error:
            sys.stderr.write(f"{error}\n")
            return 2


if __name__ == "__main__":
    sys.exit(main())
