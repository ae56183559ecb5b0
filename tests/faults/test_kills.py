"""kill -9 at named points: after a restart everything is as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.state.lock import hold_warehouse
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import Location, StoragePlace
from tests.faults.kill_driver import records, refresh_steps
from tests.project_run import ROOT
from tests.services.bucket import Buckets
from tests.shared_spark import empty_catalog
from tests.storages import bucket_server  # noqa: F401
from tests.waits import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.processes
POINTS = (
    "landing.before",
    "landing.after_deletes",
    "landing.after_table.1",
    "landing.after_table.2",
    "landing.after",
    "clock.before",
    "clock.after",
    "refresh.before_model.shop_totals",
    "refresh.after_model.shop_totals",
    "refresh.after_model.visit_counts",
    "refresh.after_model.shop_ranks",
    "checks.before",
    "checks.after",
    "snapshot.before",
    "snapshot.after",
    "batch.end",
)
# Between writes of Spark's, of landing, of models, and of the snapshot log and the checkpoint.
POINTS_IN_BUCKET = (
    "dbt.statement:12",
    "landing.after_table.1",
    "refresh.after_model.shop_totals",
    "snapshot.before",
    "snapshot.after",
)


def test_a_kill_between_two_writes_of_a_build_leaves_no_trace(
    spark: SparkSession, tmp_path: Path
) -> None:
    kill_one_after_another(spark, tmp_path, ("dbt.statement:12",))


@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_kills_at_every_point_leave_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    kill_one_after_another(spark, tmp_path, ("build.before_dbt", *POINTS))


@pytest.mark.extended
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "point", ["build.after_dbt", "dbt.statement:1", "dbt.statement:6", "dbt.statement:9"]
)
def test_a_killed_build_leaves_no_trace(spark: SparkSession, tmp_path: Path, point: str) -> None:
    kill_one_after_another(spark, tmp_path, (point,))


@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_kills_leave_no_trace_in_a_bucket(
    spark: SparkSession,
    bucket_server: Buckets,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bucket_server.make("mart-of-kills")
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    url, disturbed = "s3://mart-of-kills/eu", tmp_path / "disturbed"
    disturbed.mkdir()
    for step, point in enumerate(POINTS_IN_BUCKET):
        assert run_driver(disturbed, step, point, url) == -signal.SIGKILL, point
    last = len(POINTS_IN_BUCKET)
    assert run_driver(disturbed, last, "", url) == 0

    (tmp_path / "undisturbed").mkdir()
    refresh_steps(spark, tmp_path / "undisturbed", range(last + 1))
    place = Location.parse(url)
    on_disk = tmp_path / "undisturbed" / "warehouse"
    assert (contents(place), counts(place)) == (contents(on_disk), counts(on_disk))


def kill_one_after_another(spark: SparkSession, folder: Path, points: tuple[str, ...]) -> None:
    """Kill one process at each point, the first in a build; each finishes what the last one left.

    At the end every table and all counts are those of a run that nothing disturbed.
    """
    disturbed, undisturbed = folder / "disturbed", folder / "undisturbed"
    disturbed.mkdir()
    undisturbed.mkdir()
    for step, point in enumerate(points):
        assert run_driver(disturbed, step, point) == -signal.SIGKILL, point
    last = len(points)
    with hold_warehouse(disturbed / "warehouse"):
        refresh_steps(spark, disturbed, range(last, last + 1))
    log, warehouse = SnapshotLog(disturbed / "warehouse"), Warehouse(disturbed / "warehouse")
    newest = log.newest()
    assert newest is not None
    assert newest.status == "published"
    batches = [(row.epoch, row.batch_id) for row in log.rows(100)]
    assert len(batches) == len(set(batches))
    produced = sum(row.landed["bronze.sales"].produced for row in log.rows(100))
    assert produced == sum(len(records(step)["sales"]) for step in range(last + 1))
    rows = {
        unique_id.rpartition(".")[2]: warehouse.read(
            f"mini.{unique_id.rpartition('.')[2]}", state.version
        ).to_pylist()
        for unique_id, state in newest.models.items()
    }
    expected_totals, expected_visits = oracle(last)
    totals = {
        row["shop_id"]: (row["sale_count"], row["sales_amount"]) for row in rows["shop_totals"]
    }
    assert totals == expected_totals
    assert {row["shop_id"]: row["visit_count"] for row in rows["visit_counts"]} == expected_visits
    assert {row["shop_id"]: row["sales_amount"] for row in rows["shop_ranks"]} == {
        shop: amount for shop, (_, amount) in expected_totals.items()
    }

    was_disturbed = contents(disturbed / "warehouse"), counts(disturbed / "warehouse")
    empty_catalog(spark)
    refresh_steps(spark, undisturbed, range(last + 1))
    assert was_disturbed == (contents(undisturbed / "warehouse"), counts(undisturbed / "warehouse"))


def contents(root: StoragePlace) -> dict[str, list[str]]:
    """Return the rows of every table of the newest snapshot and of what landing keeps besides.

    Batches may be numbered otherwise: each process begins with its own batch.
    """
    warehouse, newest = Warehouse(root), SnapshotLog(root).newest()
    assert newest is not None
    models = {
        f"mini.{unique_id.rpartition('.')[2]}": state.version
        for unique_id, state in newest.models.items()
    }
    besides = ("bronze._deletes_sales", "bronze._dead_letters")
    versions = {**models, **newest.sources, **{name: warehouse.version(name) for name in besides}}
    found = {}
    for relation, version in versions.items():
        table = warehouse.read(relation, version)
        table = table.drop_columns({"_batch_id", "batch_id"} & set(table.column_names))
        found[relation] = sorted(str(row) for row in table.to_pylist())
    assert found["bronze._dead_letters"]
    assert found["bronze._deletes_sales"]
    return found


def counts(root: StoragePlace) -> dict[str, Counter[str]]:
    """Return what all snapshots together counted, by landed table."""
    found: dict[str, Counter[str]] = {}
    for row in SnapshotLog(root).rows(100):
        for relation, landed in row.landed.items():
            total = found.setdefault(relation, Counter())
            for word in ("produced", "landed", "superseded", "dead_letters"):
                total[word] += getattr(landed, word)
    return found


def run_driver(folder: Path, step: int, point: str, warehouse: str = "") -> int:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.faults.kill_driver"]
    answer = subprocess.run(
        [*command, str(folder), str(step), point, warehouse],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    if answer.returncode not in (0, -signal.SIGKILL):
        print(answer.stderr[-4000:])
    return answer.returncode


def oracle(last: int) -> tuple[dict[str, tuple[int, Decimal]], dict[str, int]]:
    """Return totals by shop and visits by shop, from the delivered records alone."""
    newest: dict[str, dict[str, Any]] = {}
    visits: Counter[str] = Counter()
    for step in range(last + 1):
        for record in records(step)["sales"]:
            if record["sale_id"] is None:
                continue
            newest[record["sale_id"]] = record
        visits.update(record["shop_id"] for record in records(step)["visits"])
    totals: dict[str, tuple[int, Decimal]] = {}
    for record in newest.values():
        if record["op"] != "d":
            count, amount = totals.get(record["shop_id"], (0, Decimal(0)))
            totals[record["shop_id"]] = (count + 1, amount + Decimal(record["amount"]))
    return totals, dict(visits)
