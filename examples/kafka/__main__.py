"""Sends the demo's orders to a topic of Kafka, and refreshes what is counted of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo.market import Market
from demo.topic import OrderTopic
from examples.rounds import Livemart, run_example, say
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import StoragePlace
from tests.services.kafka import running_kafka

PROJECT = Path(__file__).resolve().parent
_SEED = 7
_START = datetime(2026, 3, 1, 12, tzinfo=UTC)
_STEP = timedelta(minutes=5)
_TOPIC = "orders"


def main(folder: Path, project: Path, rounds: int | None) -> int:
    """Start a broker, and run the example; return 0 if every message is counted once."""
    (folder / "kafka").mkdir()
    with running_kafka(folder / "kafka") as kafka:
        return run(kafka.address, folder, project, rounds)


def run(servers: str, folder: Path, project: Path, rounds: int | None) -> int:
    """Let orders arrive and refresh, round after round; return the first exit code that is not 0.

    Args:
        servers: of a cluster without the topic, `host:port`.
        folder: for the warehouse and the landing folder.
        rounds: how many; None goes on until it is interrupted.
    """
    livemart = Livemart(folder, project, {"ORDERS_SERVERS": servers, "ORDERS_TOPIC": _TOPIC})
    topic = OrderTopic(servers, _TOPIC)
    sent = 0

    def deliver(place: StoragePlace, name: str, lines: Iterable[str]) -> Sequence[StoragePlace]:
        # Menus and restaurants are no part of this project.
        nonlocal sent
        if place.name == "orders":
            orders = list(lines)
            topic.deliver(place, name, orders)
            sent += len(orders)
        return ()

    market = Market(_SEED, restaurants=10, orders_per_day=500, deliver=deliver)
    market.history(livemart.landing, _START, days=2)
    number = 0
    while rounds is None or number < rounds:
        if code := livemart.run("refresh" if number else "build"):
            return code
        counts = counted(livemart.warehouse)
        say(f"round {number + 1}: {sent} messages sent; {counts}")
        if counts.total() != sent:
            return 1
        number += 1
        at = _START + number * _STEP
        market.live_step(livemart.landing, at - _STEP, at)
    return livemart.run("refresh") or livemart.run("verify")


def counted(warehouse: Path) -> Counter[str]:
    """Return how many messages became, or were outdone by, a version of an order, or a letter."""
    counts = Counter[str]()
    for row in SnapshotLog(warehouse).rows(100_000):
        for each in row.landed.values():
            parts = {"landed": each.landed, "superseded": each.superseded}
            counts.update(parts | {"dead letters": each.dead_letters})
    return counts


if __name__ == "__main__":
    sys.exit(run_example("examples.kafka", __doc__ or "", PROJECT, main))
