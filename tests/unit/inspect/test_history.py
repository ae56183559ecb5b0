"""The history of a warehouse: each snapshot with what it changed in every model."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.inspect.history import read_history, render_history
from livemart.state.kept_snapshots import keep_snapshot
from tests.unit.inspect.small_mart import MODEL, Mart

NOW = datetime(2026, 3, 1, 13, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 14, tzinfo=UTC)


def test_snapshots_are_listed_the_newest_first_with_the_rows_that_they_changed(
    tmp_path: Path,
) -> None:
    mart = Mart(tmp_path)
    for status in ("published", "published", "held"):
        mart.batch(status=status)
    keep_snapshot(tmp_path, 2, LATER)

    snapshots = read_history(tmp_path, 2, NOW)

    assert [(it.snapshot_id, it.status) for it in snapshots] == [(3, "held"), (2, "published")]
    assert [it.kept_until for it in snapshots] == [None, LATER]
    (model,) = snapshots[0].models
    assert (model.model, model.rows_changed, model.took_s) == (MODEL, 1, 0.001)
    assert render_history(snapshots).splitlines()[2:] == [
        "snapshot 2  2026-03-01 12:00:00  refresh, published, 1 row changed in 0.0 s, "
        "kept until 2026-03-01 14:00:00",
        "  totals  1  signed  0.00 s",
    ]


def test_versions_of_a_model_are_told_apart(tmp_path: Path) -> None:
    names = {f"model.shop.totals.v{number}": f"mart.totals_v{number}" for number in (1, 2)}
    Mart(tmp_path, names).batch()

    lines = render_history(read_history(tmp_path, 1, NOW)).splitlines()

    assert lines[1:] == ["  totals.v1  1  signed  0.00 s", "  totals.v2  1  signed  0.00 s"]


def test_models_of_two_packages_are_told_apart(tmp_path: Path) -> None:
    names = {f"model.{package}.totals": f"{package}.totals" for package in ("crm", "shop")}
    Mart(tmp_path, names).batch()

    lines = render_history(read_history(tmp_path, 1, NOW)).splitlines()

    assert lines[1:] == ["  crm.totals   1  signed  0.00 s", "  shop.totals  1  signed  0.00 s"]


def test_the_command_prints_json(tmp_path: Path) -> None:
    Mart(tmp_path).batch()

    result = CliRunner().invoke(
        cli, ["history", "--warehouse", str(tmp_path), "--output", "json", "--limit", "5"]
    )

    (snapshot,) = json.loads(result.stdout)["snapshots"]
    assert snapshot["snapshot_id"] == 1
    assert snapshot["models"][0]["rows_changed"] == 1


def test_a_warehouse_without_snapshots_has_no_history(tmp_path: Path) -> None:
    assert render_history(read_history(tmp_path, 10, NOW)).startswith("no snapshot yet")
