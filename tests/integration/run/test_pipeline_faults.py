"""Damaged state: detected, answered with advice, never ignored; and replay changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.delta.conflicts import TableChangedError
from livemart.errors import StateError
from livemart.refresh.models import refresh_models as real_refresh
from livemart.run import batch as batch_module
from livemart.run import dbt_builds, draft, replays
from livemart.settings import Settings
from livemart.state.lock import hold_warehouse
from tests.integration.mini import NOON, Mini, reasons, sale, visit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
_ATTEMPTS = int(Settings.model_fields["attempts"].default)


@pytest.fixture
def mini(spark: SparkSession, tmp_path: Path) -> Mini:
    mini = Mini(spark, tmp_path)
    mini.deliver("sales", sale("1"), sale("2", "b", "2.50"))
    mini.deliver("visits", visit("a"))
    mini.build()
    return mini


class PowerError(Exception):
    """A cut."""


def cut(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Fail at a failpoint once."""

    def fail(found: str) -> None:
        if found == name:
            monkeypatch.undo()
            raise PowerError(name)

    # Each module of a batch has its own name for it.
    for module in (batch_module, dbt_builds, draft):
        monkeypatch.setattr(module, "failpoint", fail)


@pytest.mark.parametrize(
    "place", ["clock.after", "checks.before", "snapshot.before", "snapshot.after"]
)
def test_a_replayed_batch_changes_nothing(
    mini: Mini, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mini.deliver("sales", sale("3", "b", "1.00"), sale("1", "b", "4.00", updated=1))
    mini.deliver("visits", visit("b"), visit("b"))
    cut(monkeypatch, place)
    with pytest.raises(PowerError, match=place.replace(".", r"\.")):
        mini.refresh()
    mini.restart()

    mini.refresh()

    assert mini.totals() == {"b": (3, "7.50")}
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [1, 2]
    assert len(mini.log.rows(10)) == 2
    assert mini.differing() == []


@pytest.mark.parametrize("command", ["build", "refresh"])
def test_what_a_failed_build_landed_is_counted_by_the_next_snapshot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    mini = Mini(spark, tmp_path)
    mini.deliver("sales", sale("1"), sale("2", "b", minutes=-30))
    (mini.landing / "sales" / "9.jsonl").write_text("no json\n")
    cut(monkeypatch, "build.before_dbt")
    with pytest.raises(PowerError):
        mini.pipeline(clock="event_time").build()
    mini.restart()

    getattr(mini.pipeline(clock="event_time"), command)()
    getattr(mini.pipeline(clock="event_time"), command)()

    rows = mini.log.rows(10)
    counts = [row.landed["bronze.sales"] for row in rows]
    assert [sum(found.produced for found in counts)] == [3]
    assert [sum(found.landed for found in counts)] == [2]
    assert [sum(found.dead_letters for found in counts)] == [1]
    assert {row.as_of for row in rows} == {NOON - timedelta(minutes=5)}


def test_a_lost_checkpoint_is_refused_and_a_new_epoch_is_the_way_out(mini: Mini) -> None:
    shutil.rmtree(mini.root / "warehouse" / "_livemart" / "checkpoint")

    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        mini.refresh()
    mini.deliver("sales", sale("3", "c"))
    mini.deliver("visits", visit("a"))
    mini.build(new_epoch=True)

    # Keyed records are absorbed; the append-only source passes over the file that it holds.
    assert mini.totals() == {"a": (1, "1.00"), "b": (1, "2.50"), "c": (1, "1.00")}
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [2]
    assert mini.newest.snapshot_id == 2
    mini.deliver("sales", sale("4", "c"))
    mini.refresh()
    assert mini.totals()["c"] == (2, "2.00")
    assert mini.differing() == []


def test_an_older_checkpoint_is_refused(mini: Mini) -> None:
    checkpoint = mini.root / "warehouse" / "_livemart" / "checkpoint"
    shutil.copytree(checkpoint, mini.root / "copy")
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()
    shutil.rmtree(checkpoint)
    shutil.copytree(mini.root / "copy", checkpoint)

    with pytest.raises(StateError, match="CHECKPOINT_OLDER"):
        mini.refresh()


def test_torn_offsets_are_explained_and_the_advice_works(mini: Mini) -> None:
    offsets = mini.root / "warehouse" / "_livemart" / "checkpoint" / "offsets"
    torn = offsets / str(mini.newest.batch_id + 1)
    torn.write_text("")

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as raised:
        mini.refresh()
    assert str(torn) in raised.value.hint
    torn.unlink()
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()

    assert mini.totals()["c"] == (1, "1.00")


def test_a_landed_table_rewritten_by_hand_is_refused_until_a_build_accepts_it(
    mini: Mini, spark: SparkSession
) -> None:
    spark.sql("update bronze.sales set amount = 9.00 where sale_id = '1'")

    with pytest.raises(StateError, match="LANDED_TABLE_CHANGED"):
        mini.refresh()
    mini.build()

    assert mini.totals()["a"] == (1, "9.00")
    assert mini.differing() == []


def test_a_landed_table_restored_by_hand_is_refused(mini: Mini, spark: SparkSession) -> None:
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()
    version = mini.newest.sources["bronze.sales"]
    spark.sql(f"restore table bronze.sales to version as of {version - 1}")

    with pytest.raises(StateError, match="LANDED_TABLE_CHANGED"):
        mini.refresh()


@pytest.mark.parametrize("table", ["sales", "visits"])
def test_a_dropped_landed_table_is_refused_and_landed_again(mini: Mini, table: str) -> None:
    shutil.rmtree(mini.root / "warehouse" / "bronze" / table)

    for command in (mini.refresh, mini.build):
        with pytest.raises(StateError, match="LANDED_TABLE_LOST"):
            command()
    mini.build(new_epoch=True)

    assert mini.totals() == {"a": (1, "1.00"), "b": (1, "2.50")}
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [1]
    mini.deliver("visits", visit("a"))
    mini.refresh()
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [2]
    assert mini.differing() == []


def test_another_writer_never_ends_the_stream(mini: Mini, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed = 2 * _ATTEMPTS
    fails = iter([True] * disturbed + [False])

    def refresh_models(*arguments: object) -> object:
        if next(fails):
            raise TableChangedError("TABLE_CHANGED", "written meanwhile", hint="")
        monkeypatch.undo()
        return real_refresh(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(replays, "_LONGEST_REST_S", 0.2)
    monkeypatch.setattr(batch_module, "refresh_models", refresh_models)
    mini.deliver("sales", sale("3", "c"))

    mini.refresh()

    assert len(mini.watcher.retries) == disturbed
    assert mini.totals()["c"] == (1, "1.00")


def test_a_fault_that_does_not_go_away_stops_loudly(
    mini: Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refresh_models(*_: object) -> object:
        raise RuntimeError("[DELTA_TABLE_NOT_FOUND] gone")

    monkeypatch.setattr(batch_module, "refresh_models", refresh_models)
    mini.deliver("sales", sale("3", "c"))

    with pytest.raises(RuntimeError, match="DELTA_TABLE_NOT_FOUND"):
        mini.refresh()
    assert len(mini.watcher.retries) == _ATTEMPTS - 1
    assert mini.newest.snapshot_id == 1


def test_a_write_between_two_batches_is_rebuilt_in_the_next(
    mini: Mini, spark: SparkSession
) -> None:
    spark.sql("insert into mini.visit_counts values ('z', 1)")
    mini.deliver("sales", sale("3", "c"))

    mini.refresh()

    assert reasons(mini.newest)["visit_counts"] == "CHANGED_OUTSIDE"
    assert mini.differing() == []


def test_a_model_restored_by_hand_is_rebuilt(mini: Mini, spark: SparkSession) -> None:
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()
    version = mini.newest.models["model.mini.shop_totals"].version
    spark.sql(f"restore table mini.shop_totals to version as of {version - 1}")

    mini.refresh()

    assert reasons(mini.newest)["shop_totals"] == "CHANGED_OUTSIDE"
    assert mini.totals()["c"] == (1, "1.00")
    assert mini.differing() == []


def test_compacted_tables_are_refreshed_as_before(mini: Mini, spark: SparkSession) -> None:
    mini.deliver("sales", sale("3", "c"))
    mini.deliver("visits", visit("b"))
    mini.refresh()
    for table in ("bronze.sales", "bronze.visits", "mini.visit_counts"):
        spark.sql(f"optimize {table}")
        spark.sql(f"vacuum {table}")
    mini.deliver("sales", sale("4", "c"))
    mini.deliver("visits", visit("c"))

    mini.refresh()

    assert mini.totals()["c"] == (2, "2.00")
    assert len(mini.rows("mini.visit_counts")) == 3
    assert mini.differing() == []


def test_a_second_runner_is_refused_before_it_starts_spark(mini: Mini) -> None:
    with hold_warehouse(mini.root / "warehouse"):
        answer = subprocess.run(
            [
                sys.executable,
                str(ROOT / "runner.py"),
                "refresh",
                "--project-dir",
                str(mini.project),
                "--warehouse",
                str(mini.root / "warehouse"),
            ],
            capture_output=True,
            text=True,
        )

    assert answer.returncode == 2
    assert "RUNNER_LIVES" in answer.stderr
