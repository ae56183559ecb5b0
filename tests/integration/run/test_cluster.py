"""A cluster gives the rows of one machine, on a disk and in a bucket, though an executor dies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.storage.location import Location
from tests.commands import Commands
from tests.integration.mini import PROJECT, sale, visit
from tests.services.bucket import Buckets
from tests.services.cluster import EXECUTOR, Cluster, standalone_cluster
from tests.storages import bucket_server  # noqa: F401

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def commands(cluster: Cluster, folder: Path, **environ: str) -> Commands:
    """Return the commands of a project whose executors are the cluster's."""
    conf = f"{{spark.executor.memory: {EXECUTOR}, spark.driver.host: 127.0.0.1}}"
    places = {"LIVEMART_MASTER": cluster.url, "LIVEMART_SPARK_CONF": conf}
    folder.mkdir()
    return Commands(folder, PROJECT, {**places, "LIVEMART_MEMORY": "1g", **environ})


def succeed(mart: Commands, *words: str) -> None:
    """Run a command that must succeed."""
    ended = mart.run(*words)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def totals(warehouse: Path | Location) -> dict[str, tuple[int, str]]:
    """Return count and amount by shop."""
    rows = Warehouse(warehouse).read("mini.shop_totals").to_pylist()
    return {row["shop_id"]: (row["sale_count"], str(row["sales_amount"])) for row in rows}


def build_and_refresh(mart: Commands, cluster: Cluster) -> None:
    """Build, then refresh once in each lane; an executor is killed while the large one lands."""
    mart.deliver("sales", "1", [sale("1", "a", "2.00"), sale("2", "b", "3.00")])
    mart.deliver("visits", "1", [visit("a"), visit("c")])
    succeed(mart, "build")
    mart.deliver("sales", "2", [sale("1", "a", "5.00", updated=1), sale("3", "a", "1.00")])
    succeed(mart, "refresh")
    refused = {**sale("5"), "sale_id": None}
    deleted = sale("2", "b", op="d", updated=2)
    mart.deliver("sales", "3", [deleted, sale("4", "c", "7.00"), refused])
    running = mart.start("refresh", LIVEMART_LANE="large")
    running.wait_until(lambda: "landing_began" in running.output())
    cluster.kill_an_executor()
    assert running.ended() == 0, running.output()
    # A large delivery that changes nothing.
    mart.deliver("sales", "4", [deleted, sale("4", "c", "7.00")])
    again = mart.start("refresh", LIVEMART_LANE="large")
    assert again.ended() == 0, again.output()
    succeed(mart, "verify")


def test_a_cluster_holds_the_rows_of_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    mart = commands(cluster, tmp_path / "mini")

    build_and_refresh(mart, cluster)

    assert totals(mart.warehouse) == {"a": (2, "6.00"), "c": (1, "7.00")}
    letters = Warehouse(mart.warehouse).read("bronze._dead_letters")
    assert letters.column("origin").to_pylist() == ["sales/3.jsonl:3"]
    state = mart.warehouse / "_livemart"
    assert not [path for path in ("staging", "verify") if any((state / path).rglob("*.parquet"))]


def test_executors_read_and_write_a_bucket(
    cluster: Cluster,
    bucket_server: Buckets,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bucket_server.make("mart-of-executors")
    url = "s3://mart-of-executors/eu"
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    own = {"XDG_STATE_HOME": str(tmp_path / "own"), **bucket_server.environment}
    mart = commands(cluster, tmp_path / "mini", **own)
    mart.url = url

    build_and_refresh(mart, cluster)

    assert totals(Location.parse(url)) == {"a": (2, "6.00"), "c": (1, "7.00")}


def test_executors_that_cannot_work_are_named_before_any_work(
    cluster: Cluster, tmp_path: Path
) -> None:
    mart = commands(cluster, tmp_path / "mini")
    conf = f"{{spark.executor.memory: {EXECUTOR}, spark.driver.host: 127.0.0.1, %s}}"
    # Outside of the environment that holds the packages.
    bare = Path(sys.executable).resolve()
    for python, reason in (
        ("/nowhere/python", "its first task failed: "),
        (bare, "its Python cannot import livemart: "),
    ):
        more = f"spark.pyspark.python: {python}"
        ended = mart.start("build", LIVEMART_SPARK_CONF=conf % more)
        assert ended.ended() == 2, ended.output()
        assert "EXECUTOR_UNFIT" in ended.output()
        assert reason in ended.output()
    assert mart.newest() is None
