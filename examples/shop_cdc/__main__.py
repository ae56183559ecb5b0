"""Starts a shop in PostgreSQL, follows it by Debezium and Kafka, and compares both ends."""

from __future__ import annotations

import sys
from pathlib import Path

from examples.rounds import Livemart, run_example, say
from examples.shop_cdc.compare import differing
from examples.shop_cdc.services import Services, running_services
from examples.shop_cdc.shop import Shop

PROJECT = Path(__file__).resolve().parent
_SEED = 7


def main(folder: Path, project: Path, rounds: int | None) -> int:
    """Start the servers, and run the example; return 0 if all is as in the database."""
    with running_services(folder / "services") as services:
        return run(services, folder, project, rounds)


def run(services: Services, folder: Path, project: Path, rounds: int | None) -> int:
    """Let the shop trade and refresh, round after round; return the first exit code that is not 0.

    Args:
        folder: for the warehouse and the landing folder.
        rounds: how many; None goes on until it is interrupted.
    """
    livemart = Livemart(folder, project, {"SHOP_SERVERS": services.kafka.address})
    shop = Shop(lambda: services.connection(autocommit=False), _SEED)
    shop.open()
    shop.trade(50)
    services.follow()
    number = 0
    while rounds is None or number < rounds:
        shop.trade(100 if number else 50)
        services.wait_for_all()
        if code := livemart.run("refresh" if number else "build"):
            return code
        with services.connection() as connection:
            names = differing(livemart.warehouse, connection)
        say(f"round {number + 1}: {', '.join(names) or 'nothing'} differs from the database")
        if names:
            return 1
        number += 1
    return livemart.run("verify")


if __name__ == "__main__":
    sys.exit(run_example("examples.shop_cdc", __doc__ or "", PROJECT, main))
