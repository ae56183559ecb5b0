"""Plain dbt in a prepared terminal: alone on the warehouse, refused, and beside a stream."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from livemart.state.lock import hold_warehouse, who_holds
from livemart.state.snapshots import Snapshot, SnapshotLog
from tests.integration.mini import PROJECT, sale, visit
from tests.models import ASKING

_ROOT = Path(__file__).resolve().parents[3]
_RUNNER = [sys.executable, str(_ROOT / "runner.py")]
_JAFFLE = _ROOT / "tests" / "projects" / "jaffle"
_MINUTES_S = 250
pytestmark = pytest.mark.processes


@dataclass
class _Terminal:
    """A shell in a folder of its own, on one project and one warehouse."""

    project: Path
    warehouse: Path
    landing: Path

    @property
    def places(self) -> list[str]:
        return [
            *("--project-dir", str(self.project)),
            *("--warehouse", str(self.warehouse)),
            *("--landing", str(self.landing)),
        ]

    @property
    def environment(self) -> dict[str, str]:
        inherited = (
            *("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR"),
            *("LIVEMART_JARS", "LIVEMART_JVM_OPTIONS"),
        )
        return {name: os.environ[name] for name in inherited if name in os.environ}

    def dbt(self, *commands: str) -> subprocess.CompletedProcess[str]:
        """Evaluate `env`, then run dbt commands until one fails, as an analyst would."""
        lines = subprocess.run(
            [*_RUNNER, "env", *self.places],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        script = " && ".join(['eval "$LINES"', *(f"dbt --no-use-colors {c}" for c in commands)])
        return subprocess.run(
            ["bash", "-c", script],
            env={**self.environment, "LINES": lines},
            cwd=self.warehouse.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MINUTES_S,
        )

    def deliver(self, source: str, name: str, records: Sequence[dict[str, object]]) -> None:
        folder = self.landing / source
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{name}"
        draft.write_text("".join(json.dumps(record) + "\n" for record in records))
        draft.rename(folder / f"{name}.jsonl")

    def newest(self) -> Snapshot | None:
        return SnapshotLog(self.warehouse).newest()


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> _Terminal:
    project: Path = request.param
    copied = tmp_path / "my project"
    shutil.copytree(project, copied, ignore=shutil.ignore_patterns("target", "logs"))
    terminal = _Terminal(copied, tmp_path / "joe's warehouse", tmp_path / "landing")
    terminal.warehouse.mkdir()
    terminal.landing.mkdir()
    return terminal


@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_alone_dbt_builds_on_the_warehouse(terminal: _Terminal) -> None:
    ran = terminal.dbt("build --select raw_customers stg_customers")

    assert ran.returncode == 0, ran.stdout
    assert (terminal.warehouse / "jaffle_raw" / "raw_customers" / "_delta_log").is_dir()
    assert who_holds(terminal.warehouse) is None


@pytest.mark.extended
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_alone_every_dbt_command_works_on_the_warehouse(terminal: _Terminal) -> None:
    seeded = terminal.dbt("build --select raw_customers stg_customers")
    # Each dbt is a process with an empty catalog, so the second finds what the first one made.
    ran = terminal.dbt(
        "run --select customer_history stg_customers",
        "test --select raw_customers",
        "show --inline \"select customer_name from {{ ref('stg_customers') }}\"",
        "docs generate --select raw_customers stg_customers",
    )

    assert seeded.returncode == 0, seeded.stdout
    assert ran.returncode == 0, ran.stdout
    assert "Joe's Burger" in ran.stdout
    catalog = json.loads((terminal.project / "target" / "catalog.json").read_text())
    columns = catalog["nodes"]["seed.jaffle.raw_customers"]["columns"]
    assert set(columns) == {"id", "customer_name", "note"}
    assert (terminal.warehouse / "jaffle_raw" / "raw_customers" / "_delta_log").is_dir()
    assert who_holds(terminal.warehouse) is None


@pytest.mark.nightly
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_models_that_ask_for_tables_and_seeds_that_are_sources_are_planned_and_verified(
    terminal: _Terminal,
) -> None:
    marts = terminal.project / "models" / "marts"
    (marts / "_seeds_as_sources.yml").write_text(
        "version: 2\nsources: [{name: raw, schema: jaffle_raw, tables: [{name: raw_customers}]}]\n"
    )
    (marts / "both.sql").write_text(
        "select c.id, c.customer_name, a.known from {{ source('raw', 'raw_customers') }} as c"
        " inner join {{ ref('asking') }} as a on a.id = c.id"
    )
    (marts / "asking.sql").write_text(ASKING)
    seeded = terminal.dbt("seed")

    ran = {
        command: subprocess.run(
            [*_RUNNER, *command.split(), *terminal.places],
            env=terminal.environment,
            capture_output=True,
            text=True,
            timeout=_MINUTES_S,
        )
        for command in ("plan --output json", "build", "verify")
    }

    assert seeded.returncode == 0, seeded.stdout
    assert {name: each.returncode for name, each in ran.items()} == dict.fromkeys(ran, 0), ran
    plans = {each["name"]: each for each in json.loads(ran["plan --output json"].stdout)["models"]}
    assert plans["asking"]["strategy"] == "signed"
    assert "starting Spark" in ran["plan --output json"].stderr
    for name in ("asking", "both"):
        assert re.search(rf"^{name}  equal", ran["verify"].stdout, re.MULTILINE)


@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_beside_a_runner_that_nobody_can_join_dbt_is_refused(terminal: _Terminal) -> None:
    with hold_warehouse(terminal.warehouse):
        ran = terminal.dbt("build --select raw_customers")

    assert ran.returncode != 0
    assert "RUNNER_LIVES" in ran.stdout
    assert str(os.getpid()) in ran.stdout
    assert not (terminal.warehouse / "jaffle_raw").exists()


@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_a_command_that_asks_nothing_takes_no_lock(terminal: _Terminal) -> None:
    with hold_warehouse(terminal.warehouse):
        ran = terminal.dbt("list --resource-type seed")

    assert ran.returncode == 0, ran.stdout
    assert "jaffle.raw_customers" in ran.stdout


@pytest.fixture
def stream(terminal: _Terminal) -> Iterator[subprocess.Popen[str]]:
    """A stream on the small project, with its first snapshot published."""
    terminal.deliver("sales", "0", [sale("1"), sale("2", "b", "2.50")])
    terminal.deliver("visits", "0", [visit("a")])
    log = terminal.warehouse.parent / "stream.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            # By the clock of the records no pane ends while dbt builds.
            [*_RUNNER, "stream", "--every", "2s", "--clock", "event_time", *terminal.places],
            env=terminal.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            _wait(lambda: terminal.newest() is not None, process, log)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=_MINUTES_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.mark.parametrize("terminal", [PROJECT], indirect=True)
def test_a_dbt_build_beside_the_stream_succeeds_and_never_stops_it(
    terminal: _Terminal, stream: subprocess.Popen[str]
) -> None:
    log = terminal.warehouse.parent / "stream.log"
    totals = terminal.warehouse / "mini" / "shop_totals"
    before = DeltaTable(totals).version()

    # Its CREATE OR REPLACE falls between, or into, the stream's own commits.
    built = terminal.dbt("build")
    asked = terminal.dbt(
        "test",
        "show --inline \"select count(*) as shops from {{ ref('shop_totals') }}\"",
        "docs generate",
    )
    terminal.deliver("sales", "1", [sale("3", "b", "4.00"), sale("4", "c", "1.25")])
    snapshot = terminal.newest()
    assert snapshot is not None
    _wait(lambda: _has_landed(terminal, 4), stream, log)
    stream.send_signal(signal.SIGTERM)
    stream.wait(timeout=_MINUTES_S)
    verified = subprocess.run(
        [*_RUNNER, "verify", *terminal.places],
        env=terminal.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_MINUTES_S,
    )

    assert built.returncode == 0, built.stdout
    assert asked.returncode == 0, asked.stdout
    assert re.search(r"\|\s*2\s*\|", asked.stdout), asked.stdout
    catalog = json.loads((terminal.project / "target" / "catalog.json").read_text())
    assert "sales_amount" in catalog["nodes"]["model.mini.shop_totals"]["columns"]
    assert DeltaTable(totals).version() > before
    assert stream.returncode == 143, log.read_text()
    assert verified.returncode == 0, verified.stdout
    rows = DeltaTable(totals).to_pyarrow_dataset().to_table().to_pylist()
    assert {row["shop_id"]: str(row["sales_amount"]) for row in rows} == {
        "a": "1.00",
        "b": "6.50",
        "c": "1.25",
    }


def _has_landed(terminal: _Terminal, count: int) -> bool:
    """Return True if the newest snapshot was made of `count` sales."""
    snapshot = terminal.newest()
    assert snapshot is not None
    sales = DeltaTable(
        terminal.warehouse / "bronze" / "sales", version=snapshot.sources["bronze.sales"]
    )
    return int(sales.to_pyarrow_dataset().count_rows()) == count


def _wait(is_true: Callable[[], bool], process: subprocess.Popen[str], log: Path) -> None:
    """Wait until a condition of the stream holds."""
    end = time.monotonic() + _MINUTES_S
    while not is_true():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.5)
