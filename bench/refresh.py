"""`make bench-refresh`: what a batch costs at 1 M and at 10 M orders, beside other ways to do it.

For each history: the first build by dbt; then batches of 1,000 orders through the stream, in one
warm process. Then Spark computes every model again and writes it as Delta tables. Then the same
batches in DuckDB. JSON lines on standard output, progress on standard error.

`refresh_*_s` is the time from a landed batch to its snapshot row without the project's data tests,
which neither the recompute nor DuckDB runs. `checks_*_s` are the tests, `refresh_tested_*_s` is
both. `order_events` is filled like `orders`, a version per order.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

from bench.duckdb_peer import DuckDBPeer
from bench.history import END, History
from bench.live import Batch, make_batches
from bench.mart import ANSWERS, Round, Rows, open_mart

_SEED = 20260301
_TREND_COMPARED = timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class Scale:
    """The measurements at one number of orders; the rounds are those after warming up."""

    orders: int
    build_s: float
    build_checks_s: float
    rounds: Sequence[Round]
    full_s: float
    duckdb_s: float
    is_equal: bool

    @property
    def refresh_s(self) -> float:
        """Median seconds from a landed batch to its snapshot row, data tests left out."""
        return median(each.refresh_s - each.checks_s for each in self.rounds)

    def figures(self) -> Iterator[tuple[str, float]]:
        """Yield name and value of each figure."""
        label, rounds = label_of(self.orders), self.rounds
        yield f"refresh_{label}_s", self.refresh_s
        yield f"refresh_tested_{label}_s", median(each.refresh_s for each in rounds)
        yield f"checks_{label}_s", median(each.checks_s for each in rounds)
        yield f"landing_{label}_s", median(each.landing_s for each in rounds)
        yield f"refresh_slowest_{label}_s", max(each.refresh_s - each.checks_s for each in rounds)
        yield f"full_{label}_s", self.full_s
        yield f"full_over_refresh_{label}", self.full_s / self.refresh_s
        yield f"duckdb_{label}_s", self.duckdb_s
        yield f"refresh_over_duckdb_{label}", self.refresh_s / self.duckdb_s
        yield f"build_{label}_orders_per_s", self.orders / self.build_s
        yield f"build_checks_{label}_s", self.build_checks_s
        for kind, of_round in (
            ("model", [each.models_ms for each in rounds]),
            ("commit", [each.commits_ms for each in rounds]),
        ):
            for name in sorted({name for each in of_round for name in each}):
                # A model that a batch does not change costs nothing in it.
                yield f"{kind}_{label}_ms/{name}", median(each.get(name, 0) for each in of_round)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return 1 if the answers differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.refresh", description=__doc__)
    parser.add_argument("--small", type=int, default=1_000_000, help="orders of the small history")
    parser.add_argument("--large", type=int, default=10_000_000, help="orders of the large one")
    parser.add_argument("--batch", type=int, default=1_000, help="orders of a batch")
    add_rounds(parser, warm_up=10, batches=20)
    parser.add_argument("--folder", type=Path, help="where to work (10 GB)")
    given = parser.parse_args(arguments)
    scales = []
    for orders in (given.small, given.large):
        with working_folder(given.folder) as folder:
            scales.append(measure(folder, orders, given.batch, given.warm_up, given.batches))
    small, large = scales
    report("answers_equal", int(small.is_equal and large.is_equal))
    growth = f"refresh_growth_{label_of(large.orders)}_{label_of(small.orders)}"
    report(growth, large.refresh_s / small.refresh_s)
    for scale in (large, small):
        for name, value in scale.figures():
            report(name, value)
    return 0 if small.is_equal and large.is_equal else 1


def measure(folder: Path, orders: int, size: int, warm_up: int, counted: int) -> Scale:
    """Run everything over one history; all that it writes is below `folder`."""
    began = time.monotonic()

    def say(text: str) -> None:
        seconds = time.monotonic() - began
        print(f"{label_of(orders)} {seconds:7.1f} s  {text}", file=sys.stderr, flush=True)

    history = History(orders, _SEED)
    batches = make_batches(history, warm_up + counted, size)
    say(f"{orders:,} orders drawn")
    with open_mart(folder, say) as mart:
        mart.fill(history)
        say("landed the history")
        build_s, build_checks_s = mart.build()
        say(f"built in {build_s:.1f} s, tests {build_checks_s:.1f} s")
        rounds = mart.refresh(batches)
        if len(rounds) != len(batches):
            raise RuntimeError(f"{len(rounds)} of {len(batches)} batches were refreshed")
        answers = mart.answers(END - _TREND_COMPARED)
        full_s, is_equal = mart.recompute(folder / "scratch")
    duckdb_s, peer_answers = run_duckdb(folder, history, batches, rounds, warm_up)
    say(f"DuckDB: {duckdb_s:.2f} s a batch")
    for name in ANSWERS:
        if answers[name] != peer_answers[name]:
            is_equal = False
            differing = sorted(map(str, answers[name] ^ peer_answers[name]))
            say(f"{name}: {len(differing)} rows differ from DuckDB's: {differing[:4]}")
    return Scale(orders, build_s, build_checks_s, rounds[warm_up:], full_s, duckdb_s, is_equal)


def run_duckdb(
    folder: Path,
    history: History,
    batches: Sequence[Batch],
    rounds: Sequence[Round],
    warm_up: int,
) -> tuple[float, Mapping[str, Rows]]:
    """Return DuckDB's median seconds for the batches that count, and its answers after them."""
    peer = DuckDBPeer(folder / "peer.duckdb")
    try:
        peer.load(history.restaurants(), history.dishes(), history.chunks(), END)
        seconds = []
        for batch, done in zip(batches, rounds, strict=True):
            started = time.perf_counter()
            peer.upsert(batch.orders, done.as_of)
            seconds.append(time.perf_counter() - started)
        found = (peer.metrics(), peer.top_dishes(), peer.trend(END - _TREND_COMPARED))
        answers = {name: frozenset(rows) for name, rows in zip(ANSWERS, found, strict=True)}
        return median(seconds[warm_up:]), answers
    finally:
        peer.close()


def add_rounds(parser: argparse.ArgumentParser, *, warm_up: int, batches: int) -> None:
    """Let a command take how many batches it measures, and how many come before."""
    parser.add_argument("--warm-up", type=int, default=warm_up, help="batches before it counts")
    parser.add_argument("--batches", type=int, default=batches, help="batches that count")


@contextmanager
def working_folder(parent: Path | None) -> Iterator[Path]:
    """Yield an empty folder below another one, or with temporary files; it goes with the block."""
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="livemart-bench-", dir=parent) as folder:
        yield Path(folder)


def label_of(orders: int) -> str:
    """Return a number of orders as the name of a figure has it: 10m, 250k, 7."""
    for unit, letter in ((1_000_000, "m"), (1_000, "k")):
        if orders and orders % unit == 0:
            return f"{orders // unit}{letter}"
    return str(orders)


def report(name: str, value: float) -> None:
    """Write one figure as a JSON line."""
    print(json.dumps({"figure": name, "value": round(value, 4)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
