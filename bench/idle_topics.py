"""How much longer a `refresh` with nothing to do takes if orders come by a topic of Kafka.

Two warehouses of the reference mart, one fed by files and one by a topic of a broker that is
started for it. Then commands one after the other in turns, each a separate process that finds
nothing new. JSON lines on standard output, progress on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.command import run_command, say
from bench.freshness import ROOT
from bench.refresh import report, working_folder
from demo.delivery import Deliver, hand_over_lines
from demo.market import Market
from demo.topic import OrderTopic
from tests.services.kafka import running_kafka

_SEED = 20260301


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle_topics", description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="of each kind")
    parser.add_argument("--days", type=int, default=2, help="of orders, built before the first")
    given = parser.parse_args(arguments)
    with working_folder(None) as folder:
        for part in ("kafka", "files", "topic"):
            (folder / part).mkdir()
        with running_kafka(folder / "kafka") as kafka:
            topic = OrderTopic(kafka.address, "orders")
            topic.lead_into(ROOT, folder / "topic" / "project")
            places = {
                "files": (ROOT, hand_over_lines),
                "topic": (folder / "topic" / "project", topic.deliver),
            }
            for kind, (project, deliver) in places.items():
                _fill(folder / kind, deliver, given.days)
                built = run_command(folder / kind, "build", project)
                say(f"{kind}: built in {built:.1f} s")
                run_command(folder / kind, "refresh", project)
            seconds: dict[str, list[float]] = {kind: [] for kind in places}
            for _ in range(given.rounds):
                for kind, (project, _) in places.items():
                    seconds[kind].append(run_command(folder / kind, "refresh", project))
            say(
                str({kind: [round(second, 2) for second in each] for kind, each in seconds.items()})
            )
    report("refresh_idle_command_s", median(seconds["files"]))
    report(
        "refresh_idle_command_topic_over_files", median(seconds["topic"]) / median(seconds["files"])
    )
    return 0


def _fill(folder: Path, deliver: Deliver, days: int) -> None:
    market = Market(_SEED, restaurants=10, orders_per_day=500, deliver=deliver)
    market.history(folder / "landing", datetime.now(UTC), days=days)


if __name__ == "__main__":
    sys.exit(main())
