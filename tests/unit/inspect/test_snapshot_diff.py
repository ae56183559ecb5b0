"""Two snapshots are compared row by row; what can no longer be read is not called equal."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.delta.tags import Tag
from livemart.errors import StateError
from livemart.inspect import snapshot_diff
from livemart.inspect.snapshot_diff import ModelDiff, diff_exit_code, diff_snapshots, render_diff
from livemart.state.snapshots import Snapshot
from tests.unit.inspect.small_mart import MODEL, TOTALS, Mart


@pytest.fixture
def mart(tmp_path: Path) -> Mart:
    return Mart(tmp_path)


def _diff(mart: Mart, first: Snapshot, second: Snapshot) -> ModelDiff:
    (it,) = diff_snapshots(mart.root, first, second)
    return it


@pytest.mark.parametrize("kind", ["near", "far", "changes are gone"])
def test_rows_of_either_side_are_counted_and_shown(
    mart: Mart, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    first, second, third = (mart.batch() for _ in range(3))
    if kind == "far":
        monkeypatch.setattr(snapshot_diff, "_NEAR", 0)
    elif kind == "changes are gone":
        # Upkeep has taken what is in between; the files of both versions are kept.
        files = mart.warehouse.files(TOTALS, second.models[MODEL].version)
        files.storage.delete(file.path for file in files.files())

    forward, back = _diff(mart, first, third), _diff(mart, third, first)

    assert (forward.only_in_first, forward.only_in_second) == (1, 1)
    rows = {it.snapshot_id: (it.count, it.row) for it in forward.examples}
    assert rows == {1: (1, {"id": "1", "name": "v1"}), 3: (1, {"id": "3", "name": "v3"})}
    assert {it.snapshot_id: (it.count, it.row) for it in back.examples} == rows
    assert render_diff(forward, 1, 3).splitlines()[0] == (
        f"{MODEL}  DIFFERENT  1 only in 1, 1 only in 3"
    )


def test_a_version_that_both_name_is_equal_without_a_look_at_its_rows(mart: Mart) -> None:
    first = mart.batch()
    shutil.rmtree(mart.root / "mart" / "totals" / "_change_data", ignore_errors=True)

    it = _diff(mart, first, replace(first, snapshot_id=2))

    assert (it.is_different, it.is_compared) == (False, True)
    assert render_diff(it, 1, 2) == f"{MODEL}  equal"


def test_a_model_that_one_lacks_differs_in_all_its_rows(mart: Mart) -> None:
    first = mart.batch()

    it = _diff(mart, replace(first, snapshot_id=0, models={}), first)

    assert (it.only_in_first, it.only_in_second) == (0, 1)


def test_what_can_no_longer_be_read_is_not_called_equal(mart: Mart) -> None:
    first, second = mart.batch(), mart.batch()
    remade = replace(first.models[MODEL], table_id="another")

    it = _diff(mart, replace(first, models={MODEL: remade}), second)

    assert (it.is_compared, it.is_different) == (False, False)
    assert "TABLE_MISSING" in it.note
    assert "NOT COMPARED" in render_diff(it, 1, 2)


def test_other_columns_are_named(mart: Mart) -> None:
    first = mart.batch()
    wide = pa.table({"id": [1], "total": [2]})
    mart.warehouse.overwrite("mart.wide", wide, Tag("e/mart.wide/0", 1))
    state = replace(
        first.models[MODEL],
        table_id=mart.warehouse.table_id("mart.wide"),
        version=mart.warehouse.version("mart.wide"),
    )

    it = _diff(mart, first, replace(first, snapshot_id=2, models={MODEL: state}))

    assert not it.is_compared
    assert "total" in it.note


def test_the_exit_code_is_that_of_verify() -> None:
    equal, lost = ModelDiff("a"), ModelDiff("b", note="gone", is_compared=False)
    different = ModelDiff("c", only_in_first=1)

    assert diff_exit_code([equal]) == 0
    assert diff_exit_code([equal, lost]) == 3
    assert diff_exit_code([lost, different]) == 1


def test_a_model_that_neither_has_is_named_with_the_nearest(mart: Mart) -> None:
    first = mart.batch()

    with pytest.raises(StateError, match=r"MODEL_NOT_IN_SNAPSHOTS.*total.*totals"):
        list(diff_snapshots(mart.root, first, first, "total"))


def test_versions_of_a_model_are_chosen_as_dbt_names_them(tmp_path: Path) -> None:
    names = {f"model.shop.totals.v{number}": f"mart.totals_v{number}" for number in (1, 2)}
    mart = Mart(tmp_path, names)
    first, second = mart.batch(), mart.batch()

    (it,) = diff_snapshots(tmp_path, first, second, "totals.v2")

    assert (it.model, it.only_in_second) == ("model.shop.totals.v2", 1)
    with pytest.raises(StateError, match=r"no model totals_v2, did you mean totals\.v2"):
        list(diff_snapshots(tmp_path, first, second, "totals_v2"))


def test_the_command_compares_by_number(mart: Mart) -> None:
    mart.batch()
    mart.batch()
    flags = ["--warehouse", str(mart.root), "--output", "json"]

    found = CliRunner().invoke(cli, ["diff", "1", "2", "totals", *flags])
    unknown = CliRunner().invoke(cli, ["diff", "1", "9", *flags])

    assert found.exit_code == 1
    assert [it["model"] for it in json.loads(found.stdout)["models"]] == [MODEL]
    assert unknown.exit_code == 2
    assert "SNAPSHOT_UNKNOWN" in unknown.stderr
    assert "the newest is 2" in unknown.stderr
    assert TOTALS not in unknown.stderr
