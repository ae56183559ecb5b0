"""Starts a shop in PostgreSQL, follows it by Debezium and Kafka, and compares both ends."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from examples.shop_cdc.compare import differing
from examples.shop_cdc.services import Services, running_services
from examples.shop_cdc.shop import Shop
from tests.services.maven import NotInstalledError

PROJECT = Path(__file__).resolve().parent
ROOT = PROJECT.parents[1]
_ROUNDS = 3
_SEED = 7


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; return 0 if all is as in the database, 2 if a server cannot be had."""
    parser = argparse.ArgumentParser(prog="examples.shop_cdc", description=__doc__)
    parser.add_argument("--once", action="store_true", help=f"end after {_ROUNDS} rounds")
    parser.add_argument("--project", type=Path, default=PROJECT, help="folder of the dbt project")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="shop-cdc-") as scratch:
        try:
            with running_services(Path(scratch, "services")) as services:
                rounds = _ROUNDS if options.once else None
                return run(services, Path(scratch), options.project, rounds)
        except NotInstalledError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        except KeyboardInterrupt:
            return 0


def run(services: Services, folder: Path, project: Path, rounds: int | None) -> int:
    """Let the shop trade and refresh, round after round; return the first exit code that is not 0.

    Args:
        folder: for the warehouse and the landing folder.
        rounds: how many; None goes on until it is interrupted.
    """
    for name in ("warehouse", "landing"):
        (folder / name).mkdir()
    shop = Shop(lambda: services.connection(autocommit=False), _SEED)
    shop.open()
    shop.trade(50)
    services.follow()
    number = 0
    while rounds is None or number < rounds:
        shop.trade(100 if number else 50)
        services.wait_for_all()
        command = "refresh" if number else "build"
        if code := _livemart(command, services, folder, project):
            return code
        with services.connection() as connection:
            names = differing(folder / "warehouse", connection)
        _say(f"round {number + 1}: {', '.join(names) or 'nothing'} differs from the database")
        if names:
            return 1
        number += 1
    return _livemart("verify", services, folder, project)


def _livemart(command: str, services: Services, folder: Path, project: Path) -> int:
    places = ["--project-dir", str(project), "--warehouse", str(folder / "warehouse")]
    places += ["--landing", str(folder / "landing")]
    started = time.monotonic()
    code = subprocess.run(
        [sys.executable, str(ROOT / "runner.py"), command, *places],
        env={**os.environ, "SHOP_SERVERS": services.kafka.address},
        check=False,
    ).returncode
    _say(f"{command}: exit code {code}, {time.monotonic() - started:.1f} s")
    return code


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
