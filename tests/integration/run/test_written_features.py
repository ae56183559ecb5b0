"""A project that uses dbt's features as they are written: versions, contracts, dispatch, graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project_run import PROJECTS, ProjectRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.extended


def _named(run: ProjectRun, relation: str) -> dict[str, object]:
    return {row["code"]: row["amount"] for row in run.rows(relation)}


def test_a_project_of_many_features_is_built_refreshed_and_verified(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = ProjectRun(spark, tmp_path, PROJECTS / "office")
    run.build()

    assert run.newest.status == "published"
    statuses = {key.split(".")[2]: status for key, status in run.newest.tests.items()}
    assert {key for key, status in statuses.items() if status == "warn"} == {
        "above_bookings_amount__0"
    }
    # Codes keep their zeros, as the seed declares them.
    assert _named(run, "office.merged") == {"007": 3, "08": 4, "09": 5, "1": 0}
    versions = {row["desk_id"]: row for row in run.rows("office.of_versions")}
    assert versions[1] == {"desk_id": 1, "amount": 7, "n": 2, "newest": 2}
    assert {row["room"] for row in run.rows("office.totals")} == {"a; b", "c", "d"}
    [counted] = run.rows("office.counted")
    assert counted["rows"] == 3
    fees = {row["fee"] for row in run.rows("shared.all_fees")}
    assert fees == {6, 8, 10, 0}
    assert {row["label"] for row in run.rows("shared.all_fees")} == {"office x"}

    run.edit("seeds/bookings_raw.csv", "desk_id,code,full_name,amount\n1,007,Ann,6\n2,09,Cid,5\n")
    run.edit("seeds/rooms.csv", "desk_id;room\n1;e\n2;c\n")
    run.refresh()

    assert run.newest.status == "published"
    assert run.newest.set_aside == {}
    assert _named(run, "office.merged") == {"007": 6, "09": 5}
    assert {row["room"] for row in run.rows("office.totals")} == {"e", "c"}
    assert run.rows("office.counted")[0] == {**counted, "rows": 2}
    assert run.differing() == []
    snapshot_id = run.newest.snapshot_id
    run.restart()
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id
