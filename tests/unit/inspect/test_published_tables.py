"""Other readers get the versions of the newest snapshot that no test holds back."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.errors import StateError
from livemart.inspect.published_tables import published_tables
from livemart.state.snapshots import SetAside
from tests.unit.inspect.small_mart import CLOCK, FOREIGN, MODEL, ORDERS, TOTALS, Mart


@pytest.fixture
def mart(tmp_path: Path) -> Mart:
    return Mart(tmp_path / "warehouse")


def test_each_table_has_the_version_of_the_published_snapshot(mart: Mart) -> None:
    mart.batch()
    published = mart.batch()
    mart.batch(status="held")

    tables = {table.relation: table for table in published_tables(mart.root)}

    assert {name: table.version for name, table in tables.items()} == {
        **published.sources,
        TOTALS: published.models[MODEL].version,
    }
    assert list(tables) == sorted([CLOCK, FOREIGN, ORDERS, TOTALS])
    totals = tables[TOTALS]
    assert (totals.node, totals.path) == (MODEL, str(mart.root / "mart" / "totals"))
    assert mart.values(totals.version) == ["v2"]
    assert tables[ORDERS].node is None


def test_a_copied_folder_is_not_taken_for_the_model(mart: Mart) -> None:
    mart.batch()
    for name in ("a_copy", "z_copy"):
        shutil.copytree(mart.root / "mart" / "totals", mart.root / "mart" / name)

    tables = published_tables(mart.root)

    assert [table.relation for table in tables if table.node == MODEL] == [TOTALS]


def test_a_model_that_is_set_aside_says_so(mart: Mart) -> None:
    first = mart.batch()
    aside = SetAside(2, datetime.now(UTC), "f", MODEL, "no such column")
    mart.log.append(replace(first, snapshot_id=2, batch_id=2, set_aside={MODEL: aside}))

    tables = published_tables(mart.root)

    assert [table.relation for table in tables if table.is_set_aside] == [TOTALS]


def test_before_the_first_build_there_is_nothing_to_read(mart: Mart) -> None:
    with pytest.raises(StateError, match="NOTHING_PUBLISHED"):
        published_tables(mart.root)


def test_the_command_prints_the_list_for_people_and_for_programs(mart: Mart) -> None:
    mart.batch()
    flags = ["tables", "--warehouse", str(mart.root)]

    text = CliRunner().invoke(cli, flags)
    as_json = CliRunner().invoke(cli, [*flags, "--output", "json"])

    assert text.stdout.startswith("snapshot 1: read each table at its version\n")
    assert f"{TOTALS}      " in text.stdout
    assert str(mart.root / "mart" / "totals") in text.stdout
    actual = json.loads(as_json.stdout)
    assert actual["snapshot_id"] == 1
    assert {table["relation"] for table in actual["tables"]} == {CLOCK, FOREIGN, ORDERS, TOTALS}


def test_the_command_without_a_snapshot_says_what_to_do(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli, ["tables", "--warehouse", str(tmp_path)])

    assert answer.exit_code == 2
    assert answer.stderr.startswith("NOTHING_PUBLISHED: ")
