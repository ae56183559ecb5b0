"""`make bench-histories`: what histories cost to keep whose orders may tie, beside a recompute.

For each number of changes: the first build by dbt; then batches that change 1,000 accounts through
the stream, in one warm process. Then Spark computes every model again and writes it as Delta
tables. Accounts have 20 changes each, no two at one time, so that all answers can be compared. JSON
lines on standard output, progress on standard error; `refresh_*_s` as in `bench.refresh`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.history import CHUNK, END
from bench.live import deliver_rows
from bench.mart import open_mart
from bench.refresh import add_rounds, label_of, report, working_folder
from livemart.storage.location import StoragePlace

_PROJECT = Path(__file__).parent / "histories_project"
_MODELS = (
    *("account_history", "current_accounts", "account_totals", "plans_filled"),
    *("running_balances", "changes_as_of"),
)
_SEED = 20260301
_CHANGES_OF_AN_ACCOUNT = 20
_STEP = timedelta(minutes=5)
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that arrive until `now`."""

    now: datetime
    rows: pa.Table

    def deliver(self, landing: StoragePlace, number: int) -> None:
        """Put the changes below the landing folder."""
        deliver_rows(landing, "changes", number, self.rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return 1 if stored and recomputed rows differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.histories", description=__doc__)
    parser.add_argument(
        "--changes", type=int, nargs="+", default=[200_000, 1_000_000, 2_000_000], help="histories"
    )
    parser.add_argument("--accounts", type=int, default=1_000, help="accounts that a batch changes")
    add_rounds(parser, warm_up=5, batches=10)
    parser.add_argument("--folder", type=Path, help="where to work (3 GB)")
    given = parser.parse_args(arguments)
    refreshed, is_equal = {}, True
    for count in given.changes:
        with working_folder(given.folder) as folder:
            refreshed[count], is_one_equal = _measure(
                folder, count, given.accounts, given.warm_up, given.batches
            )
            is_equal &= is_one_equal
    least, most = min(refreshed), max(refreshed)
    if least < most:
        growth = f"histories_growth_{label_of(most)}_{label_of(least)}"
        report(growth, refreshed[most] / refreshed[least])
    report("histories_equal", int(is_equal))
    return 0 if is_equal else 1


def _measure(
    folder: Path, count: int, accounts: int, warm_up: int, counted: int
) -> tuple[float, bool]:
    """Report the figures of one history; return the seconds of a refresh, and if all is equal."""
    began, label = time.monotonic(), label_of(count)

    def say(text: str) -> None:
        print(f"{label} {time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    project = folder / "project"
    shutil.copytree(_PROJECT, project, ignore=shutil.ignore_patterns("target", "logs"))
    known = max(1, count // _CHANGES_OF_AN_ACCOUNT)
    with open_mart(folder, say, project) as mart:
        mart.land("changes", _history(count, known))
        say("landed the history")
        build_s, _ = mart.build()
        say(f"built in {build_s:.1f} s")
        rounds = mart.refresh(_batches(count, known, accounts, warm_up + counted))[warm_up:]
        full_s, is_equal = mart.recompute(folder / "scratch", _MODELS)
    refresh_s = median(each.refresh_s - each.checks_s for each in rounds)
    report(f"histories_refresh_{label}_s", refresh_s)
    report(f"histories_full_{label}_s", full_s)
    report(f"histories_full_over_refresh_{label}", full_s / refresh_s)
    for name in _MODELS:
        report(
            f"histories_model_{label}_ms/{name}", median(each.models_ms[name] for each in rounds)
        )
        commits = [each.commits_ms.get(name, 0) for each in rounds]
        report(f"histories_commit_{label}_ms/{name}", median(commits))
    return refresh_s, is_equal


def _history(count: int, accounts: int) -> Iterator[pa.Table]:
    """Yield changes in the order of their time, 100,000 a table; key: change_id."""
    step = round(timedelta(days=365) / timedelta(microseconds=1) / count)
    start = round(END.timestamp() * 1_000_000) - step * count
    for first in range(0, count, CHUNK):
        numbers = np.arange(first, min(first + CHUNK, count))
        rng = np.random.default_rng([_SEED, first])
        yield _rows(rng, numbers, accounts, start + step * numbers)


def _batches(count: int, accounts: int, changed: int, batches: int) -> list[Changes]:
    """Return batches of one new change of each of some accounts; every tenth comes late."""
    made = []
    for number in range(batches):
        rng = np.random.default_rng([_SEED, 1_000_000_000 + number])
        numbers = count + np.arange(number * changed, (number + 1) * changed)
        now = END + _STEP * (number + 1)
        times = round(now.timestamp() * 1_000_000) - 10 * (1 + np.arange(changed)) - 1
        times[::10] -= 86_400_000_000 * 7
        made.append(Changes(now, _rows(rng, numbers, accounts, times)))
    return made


def _rows(
    rng: np.random.Generator, numbers: np.ndarray, accounts: int, times: np.ndarray
) -> pa.Table:
    count = len(numbers)
    at = pa.array(times).cast(_TIME)
    plans = pa.array(["basic", "plus", None]).take(pa.array(rng.integers(3, size=count)))
    amounts = pa.array(rng.integers(100_000, size=count)).cast(pa.decimal128(21, 2))
    return pa.table(
        {
            "change_id": pc.binary_join_element_wise("c", pa.array(numbers).cast("string"), ""),
            "account_id": pc.binary_join_element_wise(
                "a", pa.array(rng.integers(accounts, size=count)).cast("string"), ""
            ),
            "status": pa.array(["open", "held", "closed"]).take(
                pa.array(rng.integers(3, size=count))
            ),
            "plan": plans,
            "balance": amounts.cast(pa.decimal128(12, 2)),
            "changed_at": at,
            "updated_at": at,
            "op": pa.array(["c"] * count),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
