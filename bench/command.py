"""`make bench-command`: how long one `refresh` takes as a command, as cron and Airflow call it.

The reference mart over fifteen days of the demo's market. Each round is a separate process: some
find 100 new orders, the others nothing at all, and one times the parts of a start. The first ones
after a change of Java or of the jars leave the class archive that those after it start from. The
clock of all is that of events: with the wall's, each pane is work. JSON lines on standard output,
progress on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.freshness import ROOT
from bench.refresh import report, working_folder
from demo.market import Market
from demo.records import Order
from livemart.land.hand_over import hand_over

_SEED = 20260301
_ARCHIVED_S = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.command", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each kind")
    parser.add_argument("--orders", type=int, default=100, help="that a round finds")
    parser.add_argument("--days", type=int, default=15, help="of orders, built before the first")
    parser.add_argument("--folder", type=Path, help="where to work (1 GB); made and removed")
    given = parser.parse_args(arguments)
    with working_folder(given.folder) as folder:
        landing = folder / "landing"
        market = Market(_SEED, restaurants=40, orders_per_day=2_000)
        market.history(landing, datetime.now(UTC), days=given.days)
        say(f"built in {run_command(folder, 'build'):.1f} s")
        _deliver(landing, market, 0, given.orders)
        say(
            f"first refresh in {run_command(folder, 'refresh'):.1f} s; the archive is being written"
        )
        time.sleep(_ARCHIVED_S)
        idle, busy, parts = [], [], []
        for number in range(1, given.rounds + 1):
            idle.append(run_command(folder, "refresh"))
            _deliver(landing, market, number, given.orders)
            busy.append(run_command(folder, "refresh"))
            parts.append(_time_parts(folder))
            told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts[-1].items())
            say(
                f"round {number}: {idle[-1]:.1f} s idle, {busy[-1]:.1f} s with new orders; "
                f"alone {told}"
            )
    report("refresh_idle_command_s", median(idle))
    report("refresh_command_s", median(busy))
    for name in parts[0]:
        report(f"start_{name}_s", median(part[name] for part in parts))
    return 0


def run_command(folder: Path, command: str, project: Path = ROOT) -> float:
    """Return the seconds that a command takes, from its call to its end."""
    places = ["--warehouse", folder / "warehouse", "--landing", folder / "landing"]
    arguments = [sys.executable, ROOT / "runner.py", command, "--project-dir", project, *places]
    environ = {**os.environ, "LIVEMART_CLOCK": "event_time"}
    began = time.monotonic()
    subprocess.run([*map(str, arguments)], check=True, capture_output=True, env=environ)
    return time.monotonic() - began


def _time_parts(folder: Path) -> dict[str, float]:
    """Return the seconds of each part of a start, from a separate process."""
    command = [sys.executable, "-m", "bench.command_parts", str(ROOT), str(folder / "warehouse")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def _deliver(landing: Path, market: Market, round_: int, count: int) -> None:
    """Put one file of new orders into the landing folder, by rename."""
    now = datetime.now(UTC)
    lines = []
    for number in range(count):
        restaurant = market.restaurants[number % len(market.restaurants)]
        dish = restaurant.dishes[number % len(restaurant.dishes)]
        order = Order(
            f"bench-{round_}-{number}",
            restaurant,
            f"bench-customer-{number}",
            now,
            "placed",
            restaurant.currency,
            ((dish.dish_id, 1, dish.price),),
            now,
        )
        lines.append(order.line() + "\n")
    hand_over(landing / "orders", f"bench-{round_}.jsonl", "".join(lines).encode())


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
