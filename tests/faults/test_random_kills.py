"""kill -9 at any moment, not only at named points: the next command mends it, whatever it is.

Runs the commands as an operator does, and kills each after a random time: the process alone, whose
JVM then ends by itself, or its whole group at once, as a power cut would. The seed of each run is
printed; `LIVEMART_KILL_SEED` repeats its choices, though never to the microsecond.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.settings import load_settings
from livemart.spark.env import environment_lines
from livemart.state.lock import who_holds
from livemart.state.snapshots import SnapshotLog
from tests.faults.kill_driver import deliver
from tests.faults.test_kills import oracle
from tests.integration.mini import PROJECT
from tests.project_run import copy_project

ROOT = Path(__file__).resolve().parents[2]
RUNNER = (sys.executable, str(ROOT / "runner.py"))
# Each of these is killed in turn, the first ones before there is any table.
DAY = ("build", "build", "refresh", "dbt", "stream", "build", "beside", "refresh")
NIGHT_ROUNDS = 63
PATIENCE_S = 300
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
        if command == "dbt" and not market.has_snapshot:
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


@dataclass
class Market:
    """A project, its warehouse and landing folder, and the commands that run on them."""

    folder: Path
    random: random.Random
    step: int = 0
    said: list[str] = field(default_factory=list)
    # How long a command has worked until now, by command: kills fall into that time.
    _spans: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        copy_project(PROJECT, self.folder / "project")
        (self.folder / "landing").mkdir()

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def has_snapshot(self) -> bool:
        return SnapshotLog(self.warehouse).newest() is not None

    @property
    def places(self) -> list[str]:
        return [
            *("--project-dir", str(self.folder / "project")),
            *("--warehouse", str(self.warehouse)),
        ]

    def deliver(self) -> None:
        """Let the records of another step arrive."""
        deliver(self.folder / "landing", self.step)
        self.step += 1

    def rows(self) -> dict[str, list[dict[str, object]]]:
        """Return what readers see, by model."""
        newest = SnapshotLog(self.warehouse).newest_published()
        assert newest is not None
        warehouse = Warehouse(self.warehouse)
        names = {unique_id: unique_id.rpartition(".")[2] for unique_id in newest.models}
        return {
            name: warehouse.read(f"mini.{name}", newest.models[unique_id].version).to_pylist()
            for unique_id, name in names.items()
        }

    def run(self, command: str) -> str:
        """Run a command to its end, which must be a good one, and return what it said."""
        running = self._start(command)
        code = running.process.wait(PATIENCE_S)
        said = running.output()
        assert code == 0, f"{self.said}\n{command}: {code}\n{said[-4000:]}"
        return said

    def kill(self, command: str) -> None:
        """Run a command until it is killed; if it ends before that, it must end well, once more."""
        while True:
            self.deliver()
            beside = self._start("stream") if command == "beside" else None
            if beside is not None:
                beside.wait_for_guests(self.warehouse)
            running = self._start("dbt" if command == "beside" else command)
            running.wait_until_it_works()
            span = self._spans.get(command, 8.0)
            rest, started = self.random.uniform(0.0, span), time.monotonic()
            is_over = running.ends_within(rest)
            self._spans[command] = time.monotonic() - started if is_over else max(span, 1.1 * rest)
            victim = running
            if beside is not None and self.random.random() < 0.5:
                victim = beside
            is_group = self.random.random() < 0.5
            is_killed = victim.kill(is_group=is_group)
            if beside is not None:
                # Whichever is left ends in its own way: killed, too, or by itself.
                running.process.wait(PATIENCE_S) if victim is beside else beside.kill(is_group=True)
            if not is_killed:
                said = running.output()
                assert running.process.returncode == 0, f"{self.said}\n{command}\n{said[-4000:]}"
                continue
            what = "its group" if is_group else "the process alone"
            whose = "the stream, " if victim is beside else ""
            self.said.append(f"{command}: {whose}{what}, {rest:.2f} s after it began to work")
            return

    def _start(self, command: str) -> _Running:
        return _Running(self, command)


class _Running:
    """A command in a process group of its own."""

    def __init__(self, market: Market, command: str) -> None:
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        places = market.places
        if command == "dbt":
            settings = load_settings(
                {
                    "project_dir": str(market.folder / "project"),
                    "warehouse": str(market.warehouse),
                    "memory": "1g",
                },
                environ={},
            )
            script = "\n".join([*environment_lines(settings), "exec dbt --no-use-colors run"])
            arguments = ["bash", "-c", script]
        else:
            arguments = [*RUNNER, command, *places]
            if command != "verify":
                arguments += ["--landing", str(market.folder / "landing")]
            if command == "stream":
                arguments += ["--every", "1s"]
            environ |= {"LIVEMART_MASTER": "local[2]", "LIVEMART_MEMORY": "1g"}
            environ |= {"LIVEMART_PANE": "1s"} if command == "stream" else {}
        self._log = market.folder / f"{market.step}-{command}-{time.monotonic_ns()}.log"
        self._command = command
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                arguments,
                cwd=market.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until_it_works(self) -> None:
        """Wait until Spark and dbt are ready; what comes before that writes nothing."""
        word = "Concurrency" if self._command == "dbt" else "reading the project"
        self._wait(lambda: word in self.output())

    def wait_for_guests(self, warehouse: Path) -> None:
        """Wait until a dbt beside the stream finds it."""

        def is_announced() -> bool:
            holder = who_holds(warehouse)
            return holder is not None and holder.connect_port is not None

        self._wait(is_announced)

    def ends_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self, *, is_group: bool) -> bool:
        """Kill the process, or all that it has started; return False if it was over before."""
        if self.process.poll() is None:
            if is_group:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        return self.process.wait(PATIENCE_S) == -signal.SIGKILL

    def _wait(self, is_true: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        while not is_true() and self.process.poll() is None:
            assert time.monotonic() < ends_at, self.output()[-4000:]
            time.sleep(0.05)
