"""A reader keeps a snapshot by a command, and `tables` and `status` tell of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from livemart.cli.commands import cli
from tests.unit.inspect.small_mart import MODEL, TOTALS, Mart


@pytest.fixture
def mart(tmp_path: Path) -> Mart:
    return Mart(tmp_path)


def _call(mart: Mart, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--warehouse", str(mart.root)])


def test_a_kept_snapshot_is_told_by_status_and_its_tables_by_their_versions(mart: Mart) -> None:
    first = mart.batch()
    mart.batch()

    kept = _call(mart, "keep", "1", "--for", "2h")

    assert kept.exit_code == 0, kept.output
    assert "snapshot 1 is kept until" in kept.stdout
    assert "snapshot 1 is kept until" in _call(mart, "status", "--store", "none").stdout
    listed = _call(mart, "tables", "--snapshot", "1").stdout
    assert listed.startswith("snapshot 1")
    (line,) = [it for it in listed.splitlines() if it.startswith(TOTALS)]
    assert line.split()[1] == str(first.models[MODEL].version)


def test_a_snapshot_that_is_released_is_kept_no_longer(mart: Mart) -> None:
    mart.batch()
    _call(mart, "keep", "1")

    assert _call(mart, "keep", "1", "--release").stdout == "snapshot 1 is no longer kept\n"
    assert _call(mart, "keep", "1", "--release").stdout == "snapshot 1 is not kept\n"
    assert "is kept until" not in _call(mart, "status", "--store", "none").stdout


def test_a_snapshot_whose_files_are_gone_cannot_be_kept(mart: Mart) -> None:
    first = mart.batch()
    files = mart.warehouse.files(TOTALS, first.models[MODEL].version)
    mart.batch()
    files.storage.delete(file.path for file in files.files())

    refused = _call(mart, "keep", "1")

    assert refused.exit_code != 0
    assert "VERSION_GONE" in refused.stderr
    assert "is kept until" not in _call(mart, "status", "--store", "none").stdout


def test_an_interval_that_is_none_is_refused(mart: Mart) -> None:
    mart.batch()

    refused = _call(mart, "keep", "1", "--for", "soon")

    assert refused.exit_code == 2
    assert "'soon' is not an interval" in refused.stderr
