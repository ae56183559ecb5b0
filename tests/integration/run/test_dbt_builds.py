"""dbt in this process, on a project that knows nothing of livemart, before and after a restart."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from livemart.project.dbt import Dbt
from livemart.project.graph import Project
from livemart.project.node_results import NodeProgress
from livemart.run.events import RunEvent, StepBegan
from livemart.run.runtime import load_plans
from livemart.settings import load_settings
from livemart.spark.catalog import name_of, register, save_views
from tests.models import ASKING
from tests.project_run import PROJECTS, copy_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEEDS = ("seed.jaffle.raw_customers", "seed.jaffle.raw_orders", "seed.jaffle.raw_payments")
_TABLES = (
    "jaffle_analytics.daily_orders",
    "jaffle_analytics.dim_customers",
    "jaffle_analytics.orders",
    "jaffle_raw.raw_customers",
)


class _Jaffle:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.project_dir = folder / "jaffle"
        # Every quoting on the way to Spark has to bear this name.
        self.warehouse = folder / "joe's warehouse"
        self.seen: list[NodeProgress] = []
        copy_project(PROJECTS / "jaffle", self.project_dir)
        self.dbt = Dbt(
            self.project_dir,
            warehouse=self.warehouse,
            session=lambda: spark,
            progress=self.seen.append,
        )

    def load(self) -> Project:
        return self.dbt.load()

    def forget(self) -> None:
        """Leave the catalog as a new process finds it: the tables are in the warehouse only."""
        for (schema,) in self.spark.sql("show databases").collect():
            for row in self.spark.sql(f"show tables in `{schema}`").collect():
                if not row.isTemporary:
                    kind = "view" if row.tableName.startswith("stg_") else "table"
                    self.spark.sql(f"drop {kind} {name_of(f'{schema}.{row.tableName}')}")

    def version(self, relation: str) -> int:
        return DeltaTable(self.warehouse.joinpath(*relation.split("."))).version()

    def properties(self, relation: str) -> dict[str, str]:
        table = DeltaTable(self.warehouse.joinpath(*relation.split(".")))
        return dict(table.metadata().configuration)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.spark.sql(query).collect()]


@pytest.fixture
def jaffle(spark: SparkSession, tmp_path: Path) -> _Jaffle:
    jaffle = _Jaffle(spark, tmp_path)
    register(spark, jaffle.warehouse, jaffle.load())
    return jaffle


@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_a_foreign_project_builds_again_after_a_restart_and_keeps_its_history(
    jaffle: _Jaffle,
) -> None:
    first = jaffle.dbt.build(unit_tests=True)
    jaffle.spark.conf.set("spark.databricks.delta.write.txnAppId", "an engine's own")
    try:
        again = jaffle.dbt.build(full_refresh=False)
    finally:
        jaffle.spark.conf.unset("spark.databricks.delta.write.txnAppId")
    before = {relation: jaffle.version(relation) for relation in _TABLES}
    jaffle.forget()
    registered = register(jaffle.spark, jaffle.warehouse, jaffle.load())
    restarted = jaffle.dbt.build()

    for results in (first, again, restarted):
        failed = {name: each for name, each in results.items() if each.status != "success"}
        assert failed == {}
    assert any(result.kind == "unit_test" for result in first.values())
    assert set(_TABLES) < set(registered)
    assert "jaffle_staging.stg_orders" in registered
    assert {
        relation for relation in _TABLES if jaffle.version(relation) <= before[relation]
    } == set()
    # The change feed that a refresh reads is on, though the project says nothing of it.
    for relation in _TABLES:
        assert jaffle.properties(relation)["delta.enableChangeDataFeed"] == "true"
    # dbt sets it for insert_overwrite, and leaves it behind.
    mode = str(jaffle.spark.conf.get("spark.sql.sources.partitionOverwriteMode"))
    assert mode.upper() == "STATIC"
    assert {progress.unique_id for progress in jaffle.seen} >= set(first)


def test_seeds_keep_text_numbers_times_and_nulls(jaffle: _Jaffle) -> None:
    jaffle.dbt.build(only=_SEEDS, data_tests=False)

    customers = jaffle.rows("select * from jaffle_raw.raw_customers order by id")
    orders = jaffle.rows(
        "select external_number, ordered_at from jaffle_raw.raw_orders where id < 4"
    )
    payments = jaffle.rows("select id, rate from jaffle_raw.raw_payments order by id")

    assert customers == [
        (1, "Joe's Burger", 'says "hello", twice'),
        (2, "O'Neill \\ Sons", None),
        (3, "Zoë Müller", "'quoted'"),
        (4, None, "None"),
    ]
    assert sorted(orders, key=str) == [
        (9007199254740993, _utc(datetime(2026, 1, 1, 10, 0, 0, 123456))),
        (9007199254740995, _utc(datetime(2026, 1, 2, 11, 30, 0, 1))),
        (None, _utc(datetime(2026, 1, 2, 23, 59, 59, 999999))),
    ]
    assert payments == [
        (10, Decimal("0.100000")),
        (11, Decimal("1234567890.120000")),
        (12, None),
        (13, Decimal("0.250000")),
    ]


def _utc(moment: datetime) -> datetime:
    """Return a moment as PySpark hands it out: without a zone, in that of this process."""
    return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=None)


def test_a_plan_starts_spark_for_models_that_ask_it_while_dbt_compiles(
    jaffle: _Jaffle, monkeypatch: pytest.MonkeyPatch
) -> None:
    jaffle.dbt.build(only=_SEEDS[:1])
    jaffle.forget()
    monkeypatch.setattr("livemart.spark.session.open_session", lambda *_, **__: jaffle.spark)
    monkeypatch.setattr(type(jaffle.spark), "stop", lambda self: None)
    settings = load_settings(
        {"project_dir": str(jaffle.project_dir), "warehouse": str(jaffle.warehouse)}, environ={}
    )
    events: list[RunEvent] = []

    load_plans(settings, events.append)
    assert events == [StepBegan("reading the project")]
    (jaffle.project_dir / "models" / "marts" / "asking.sql").write_text(ASKING)
    _, plans, _ = load_plans(settings, events.append)

    assert plans.models["model.jaffle.asking"].strategy.name == "signed"
    assert events[2:] == [
        StepBegan("starting Spark, for a model that only Spark can compile or read")
    ]


def test_without_a_project_the_kept_views_come_back(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "kept" / "numbers"))
    register(spark, tmp_path)
    # In the order of names a view comes before the one that it reads.
    spark.sql("create view kept.b as select id from kept.numbers where id > 0")
    spark.sql("create view kept.a as select id + 1 as id from kept.b")
    save_views(spark, tmp_path)
    for view in ("a", "b"):
        spark.sql(f"drop view kept.{view}")
    spark.sql("drop table kept.numbers")

    registered = register(spark, tmp_path)

    assert registered == ["kept.numbers", "kept.b", "kept.a"]
    assert spark.sql("select sum(id) from kept.a").first() == (5,)


def test_what_is_no_table_is_not_registered(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.format("delta").save(str(tmp_path / "_livemart" / "snapshots"))
    (tmp_path / "stray" / "files").mkdir(parents=True)
    (tmp_path / "stray" / "notes.txt").touch()

    assert register(spark, tmp_path) == []
