"""Plain dbt in a prepared terminal: alone on the warehouse, refused, and beside a stream."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from livemart.state.lock import hold_warehouse, who_holds
from tests.commands import Commands, Running
from tests.integration.mini import PROJECT, sale, visit
from tests.models import ASKING
from tests.project_run import PROJECTS

_JAFFLE = PROJECTS / "jaffle"
pytestmark = pytest.mark.processes


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Commands:
    return Commands(tmp_path, request.param)


@pytest.mark.extended
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_alone_dbt_builds_on_the_warehouse(terminal: Commands) -> None:
    built = terminal.dbt("build --select raw_customers stg_customers")

    assert built.code == 0, built.output
    assert (terminal.warehouse / "jaffle_raw" / "raw_customers" / "_delta_log").is_dir()
    assert who_holds(terminal.warehouse) is None


@pytest.mark.extended
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_alone_every_dbt_command_works_on_the_warehouse(terminal: Commands) -> None:
    seeded = terminal.dbt("build --select raw_customers stg_customers")
    # Each dbt is a process with an empty catalog, so the second finds what the first one made.
    ran = terminal.dbt(
        "run --select customer_history stg_customers",
        "test --select raw_customers",
        "show --inline \"select customer_name from {{ ref('stg_customers') }}\"",
        "docs generate --select raw_customers stg_customers",
    )

    assert seeded.code == 0, seeded.output
    assert ran.code == 0, ran.output
    assert "Joe's Burger" in ran.output
    catalog = json.loads((terminal.project / "target" / "catalog.json").read_text())
    columns = catalog["nodes"]["seed.jaffle.raw_customers"]["columns"]
    assert set(columns) == {"id", "customer_name", "note"}
    assert (terminal.warehouse / "jaffle_raw" / "raw_customers" / "_delta_log").is_dir()
    assert who_holds(terminal.warehouse) is None


@pytest.mark.extended
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_models_that_ask_for_tables_and_seeds_that_are_sources_are_planned_and_verified(
    terminal: Commands,
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
        command: terminal.run(*command.split())
        for command in ("plan --output json", "build", "verify")
    }

    assert seeded.code == 0, seeded.output
    assert {name: each.returncode for name, each in ran.items()} == dict.fromkeys(ran, 0), ran
    plans = {each["name"]: each for each in json.loads(ran["plan --output json"].stdout)["models"]}
    assert plans["asking"]["strategy"] == "signed"
    assert "starting Spark" in ran["plan --output json"].stderr
    for name in ("asking", "both"):
        assert re.search(rf"^{name}  equal", ran["verify"].stdout, re.MULTILINE)


@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_beside_a_runner_that_nobody_can_join_dbt_is_refused(terminal: Commands) -> None:
    with hold_warehouse(terminal.warehouse):
        ran = terminal.dbt("build --select raw_customers")

    assert ran.code != 0
    assert "RUNNER_LIVES" in ran.output
    assert str(os.getpid()) in ran.output
    assert not (terminal.warehouse / "jaffle_raw").exists()


@pytest.mark.extended
@pytest.mark.parametrize("terminal", [_JAFFLE], indirect=True)
def test_a_command_that_asks_nothing_takes_no_lock(terminal: Commands) -> None:
    with hold_warehouse(terminal.warehouse):
        ran = terminal.dbt("list --resource-type seed")

    assert ran.code == 0, ran.output
    assert "jaffle.raw_customers" in ran.output


@pytest.fixture
def stream(terminal: Commands) -> Iterator[Running]:
    """A stream on the small project, with its first snapshot published."""
    terminal.deliver("sales", "0", [sale("1"), sale("2", "b", "2.50")])
    terminal.deliver("visits", "0", [visit("a")])
    # By the clock of the records no pane ends while dbt builds.
    running = terminal.start("stream", "--every", "2s", "--clock", "event_time")
    try:
        running.wait_until(lambda: terminal.newest() is not None)
        yield running
    finally:
        running.kill()


@pytest.mark.extended
@pytest.mark.parametrize("terminal", [PROJECT], indirect=True)
def test_a_dbt_build_beside_the_stream_succeeds_and_never_stops_it(
    terminal: Commands, stream: Running
) -> None:
    before = DeltaTable(_totals(terminal)).version()

    # Its CREATE OR REPLACE falls between, or into, the stream's own commits.
    built = terminal.dbt("build")
    _go_on(terminal, stream)

    assert built.code == 0, built.output
    assert DeltaTable(_totals(terminal)).version() > before
    assert _rows_of(_totals(terminal)) == {"a": "1.00", "b": "6.50", "c": "1.25"}


@pytest.mark.extended
@pytest.mark.parametrize("terminal", [PROJECT], indirect=True)
def test_every_dbt_command_works_beside_the_stream(terminal: Commands, stream: Running) -> None:
    asked = terminal.dbt(
        "run --select shop_totals",
        "test",
        "show --inline \"select count(*) as shops from {{ ref('shop_totals') }}\"",
        "docs generate",
    )
    _go_on(terminal, stream)
    verified = terminal.run("verify")

    assert asked.code == 0, asked.output
    assert re.search(r"\|\s*2\s*\|", asked.output), asked.output
    catalog = json.loads((terminal.project / "target" / "catalog.json").read_text())
    assert "sales_amount" in catalog["nodes"]["model.mini.shop_totals"]["columns"]
    assert verified.returncode == 0, verified.stdout + verified.stderr


def _totals(terminal: Commands) -> Path:
    return terminal.warehouse / "mini" / "shop_totals"


def _go_on(terminal: Commands, stream: Running) -> None:
    """Let the stream land two more sales, and end it as an operator does."""
    terminal.deliver("sales", "1", [sale("3", "b", "4.00"), sale("4", "c", "1.25")])
    stream.wait_until(lambda: _has_landed(terminal, 4))
    assert stream.stop() == 143, stream.output()


def _rows_of(totals: Path) -> dict[str, str]:
    rows = DeltaTable(totals).to_pyarrow_dataset().to_table().to_pylist()
    return {row["shop_id"]: str(row["sales_amount"]) for row in rows}


def _has_landed(terminal: Commands, count: int) -> bool:
    """Return True if the newest snapshot was computed from `count` sales."""
    snapshot = terminal.newest()
    assert snapshot is not None
    sales = DeltaTable(
        terminal.warehouse / "bronze" / "sales", version=snapshot.sources["bronze.sales"]
    )
    return int(sales.to_pyarrow_dataset().count_rows()) == count
