"""kill -9 at any moment, not only at named points: the next command mends it, whatever it is.

Runs the commands as an operator does, and kills each after a random time. It kills the process
alone, whose JVM then ends by itself, or its whole group at once, as a power cut would. The seed of
each run is printed; `LIVEMART_KILL_SEED` repeats its choices, though never to the microsecond.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import time
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.state.lock import who_holds
from livemart.state.snapshots import SnapshotLog
from tests.commands import Commands, Running
from tests.faults.kill_driver import deliver
from tests.faults.test_kills import oracle
from tests.integration.mini import PROJECT
from tests.waits import wait_until

# Each of these is killed in turn, the first ones before there is any table.
DAY = ("build", "build", "refresh", "dbt", "stream", "build", "beside", "refresh")
NIGHT_ROUNDS = 63
pytestmark = [pytest.mark.processes, pytest.mark.nightly]


@pytest.mark.timeout(3600)
def test_kills_at_random_moments_are_mended_by_the_next_command(tmp_path: Path) -> None:
    kill_at_random(tmp_path, DAY)


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("number", range(NIGHT_ROUNDS))
def test_more_kills_at_random_moments(tmp_path: Path, number: int) -> None:
    kill_at_random(tmp_path, DAY, number)


def kill_at_random(folder: Path, commands: tuple[str, ...], number: int = 0) -> None:
    """Kill one command after the other, then let one end: all rows are those of the records."""
    seed = int(os.environ.get("LIVEMART_KILL_SEED") or secrets.randbelow(2**31)) + number
    print(f"LIVEMART_KILL_SEED={seed - number} (round {number})")
    market = Market(folder, random.Random(seed))
    for place, command in enumerate(commands):
        if command == "dbt" and market.commands.newest() is None:
            # It reads landed tables, and never makes them.
            market.run("refresh")
        market.kill(command)
        print(f"{place}: {market.said[-1]}")
    market.deliver()
    market.run(market.random.choice(("build", "refresh")))
    verified = market.run("verify")

    assert "DIFFERENT" not in verified
    rows = market.rows()
    expected_totals, expected_visits = oracle(market.step - 1)
    assert {
        row["shop_id"]: (row["sale_count"], row["sales_amount"]) for row in rows["shop_totals"]
    } == expected_totals
    assert {row["shop_id"]: row["visit_count"] for row in rows["visit_counts"]} == expected_visits


class Market:
    """Commands on one project that are killed in turn, and what each is killed at."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        environ = {"LIVEMART_MASTER": "local[2]", "LIVEMART_MEMORY": "1g"}
        self.commands = Commands(folder, PROJECT, environ)
        self.random = chance
        self.step = 0
        self.said: list[str] = []
        # How long a command has worked until now, by command: kills fall into that time.
        self._spans: dict[str, float] = {}

    def deliver(self) -> None:
        """Let the records of another step arrive."""
        deliver(self.commands.landing, self.step)
        self.step += 1

    def rows(self) -> dict[str, list[dict[str, object]]]:
        """Return what readers see, by model."""
        newest = SnapshotLog(self.commands.warehouse).newest_published()
        assert newest is not None
        warehouse = Warehouse(self.commands.warehouse)
        names = {unique_id: unique_id.rpartition(".")[2] for unique_id in newest.models}
        return {
            name: warehouse.read(f"mini.{name}", newest.models[unique_id].version).to_pylist()
            for unique_id, name in names.items()
        }

    def run(self, command: str) -> str:
        """Run a command to its end, which must be a good one, and return what it said."""
        running = self._start(command)
        code = running.ended()
        said = running.output()
        assert code == 0, f"{self.said}\n{command}: {code}\n{said[-4000:]}"
        return said

    def kill(self, command: str) -> None:
        """Run a command until it is killed; if it ends before that, it must end well, once more."""
        while True:
            self.deliver()
            beside = self._start("stream") if command == "beside" else None
            if beside is not None:
                beside.wait_until(self._has_guests)
            kind = "dbt" if command == "beside" else command
            running = self._start(kind)
            _wait_until_it_works(running, "Concurrency" if kind == "dbt" else "reading the project")
            span = self._spans.get(command, 8.0)
            rest, started = self.random.uniform(0.0, span), time.monotonic()
            is_over = _ends_within(running, rest)
            self._spans[command] = time.monotonic() - started if is_over else max(span, 1.1 * rest)
            victim = running
            if beside is not None and self.random.random() < 0.5:
                victim = beside
            is_group = self.random.random() < 0.5
            is_killed = victim.kill(is_group=is_group)
            if beside is not None:
                # Whichever is left ends in its own way: killed, too, or by itself.
                running.ended() if victim is beside else beside.kill()
            if not is_killed:
                said = running.output()
                assert running.process.returncode == 0, f"{self.said}\n{command}\n{said[-4000:]}"
                continue
            what = "its group" if is_group else "the process alone"
            whose = "the stream, " if victim is beside else ""
            self.said.append(f"{command}: {whose}{what}, {rest:.2f} s after it began to work")
            return

    def _start(self, command: str) -> Running:
        if command == "dbt":
            return self.commands.start_dbt("run")
        if command == "stream":
            return self.commands.start("stream", "--every", "1s", LIVEMART_PANE="1s")
        return self.commands.start(command)

    def _has_guests(self) -> bool:
        """Return True once a dbt beside the stream finds it."""
        holder = who_holds(self.commands.warehouse)
        return holder is not None and holder.connect_port is not None


def _wait_until_it_works(running: Running, word: str) -> None:
    """Wait until Spark and dbt are ready, or it has ended; what comes before writes nothing."""
    wait_until(lambda: word in running.output() or running.process.poll() is not None)


def _ends_within(running: Running, seconds: float) -> bool:
    try:
        running.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
