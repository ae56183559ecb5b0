"""Damaged state: detected, answered with advice, never ignored; and replay changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from livemart.conflicts import TableChangedError
from livemart.errors import RefreshError, StateError
from livemart.inspect.status import read_status, render_status
from livemart.own_faults import VARIABLE
from livemart.refresh import models, strategy
from livemart.refresh.models import refresh_models as real_refresh
from livemart.refresh.signed import refresh_signed as real_signed
from livemart.run import batch as batch_module
from livemart.run import dbt_builds, draft, replays
from livemart.run.events import BatchEnded, RunEvent
from livemart.run.pipeline import Pipeline, RunOutcome
from livemart.run.stream import Stream
from livemart.settings import Settings
from livemart.state.lock import hold_warehouse
from tests.integration.mini import Mini, sale, visit
from tests.project_run import NOON, Silent, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
_ATTEMPTS = int(Settings.model_fields["attempts"].default)


class PowerError(Exception):
    """A cut."""


def cut(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Fail at a failpoint once."""

    def fail(found: str) -> None:
        if found == name:
            monkeypatch.undo()
            raise PowerError(name)

    # Each module of a batch has its own name for it.
    for module in (batch_module, dbt_builds, draft, models):
        monkeypatch.setattr(module, "failpoint", fail)


@pytest.mark.parametrize(
    "place",
    [
        "clock.after",
        "refresh.after_model.shop_totals",
        "checks.before",
        "snapshot.before",
        "snapshot.after",
    ],
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
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [2, 3]
    assert len(mini.log.rows(10)) == 2
    assert mini.differing() == []


@pytest.mark.extended
@pytest.mark.parametrize("command", ["refresh", "build"])
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


@pytest.mark.extended
def test_a_lost_checkpoint_is_refused_and_a_new_epoch_is_the_way_out(mini: Mini) -> None:
    shutil.rmtree(mini.root / "warehouse" / "_livemart" / "checkpoint")

    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        mini.refresh()
    mini.deliver("sales", sale("3", "c"))
    mini.deliver("visits", visit("a"))
    mini.build(new_epoch=True)

    # Keyed records are absorbed; the append-only source passes over the file that it holds.
    assert mini.totals() == {"a": (1, "1.00"), "b": (1, "2.50"), "c": (1, "1.00")}
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [3, 1]
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


@pytest.mark.extended
def test_a_landed_table_rewritten_by_hand_is_refused_until_a_build_accepts_it(
    mini: Mini, spark: SparkSession
) -> None:
    spark.sql("update bronze.sales set amount = 9.00 where sale_id = '1'")

    with pytest.raises(StateError, match="LANDED_TABLE_CHANGED"):
        mini.refresh()
    mini.build()

    assert mini.totals()["a"] == (2, "10.00")
    assert mini.differing() == []


@pytest.mark.extended
def test_a_landed_table_restored_by_hand_is_refused(mini: Mini, spark: SparkSession) -> None:
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()
    version = mini.newest.sources["bronze.sales"]
    spark.sql(f"restore table bronze.sales to version as of {version - 1}")

    with pytest.raises(StateError, match="LANDED_TABLE_CHANGED"):
        mini.refresh()


@pytest.mark.extended
@pytest.mark.parametrize("table", ["sales", "visits"])
def test_a_dropped_landed_table_is_refused_and_landed_again(mini: Mini, table: str) -> None:
    shutil.rmtree(mini.root / "warehouse" / "bronze" / table)

    for command in (mini.refresh, mini.build):
        with pytest.raises(StateError, match="LANDED_TABLE_LOST"):
            command()
    mini.build(new_epoch=True)

    assert mini.totals() == {"a": (2, "2.00"), "b": (1, "2.50")}
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [2, 1]
    mini.deliver("visits", visit("a"))
    mini.refresh()
    assert [row["visit_count"] for row in mini.rows("mini.visit_counts")] == [3, 1]
    assert mini.differing() == []


def test_another_writer_never_ends_the_stream(mini: Mini, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed = 2 * _ATTEMPTS
    fails = iter([True] * disturbed + [False])

    def refresh_models(*arguments: Any, **options: Any) -> object:
        if next(fails):
            raise TableChangedError("TABLE_CHANGED", "written meanwhile", hint="")
        monkeypatch.undo()
        return real_refresh(*arguments, **options)

    monkeypatch.setattr(replays, "_LONGEST_REST_S", 0.2)
    monkeypatch.setattr(batch_module, "refresh_models", refresh_models)
    mini.deliver("sales", sale("3", "c"))

    mini.refresh()

    assert len(mini.watcher.retries) == disturbed
    assert mini.totals()["c"] == (1, "1.00")


def test_a_fault_that_does_not_go_away_stops_loudly(
    mini: Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refresh_models(*_: object, **__: object) -> object:
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


@pytest.mark.extended
def test_a_model_restored_by_hand_is_rebuilt(mini: Mini, spark: SparkSession) -> None:
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()
    version = mini.newest.models["model.mini.shop_totals"].version
    spark.sql(f"restore table mini.shop_totals to version as of {version - 1}")

    mini.refresh()

    assert reasons(mini.newest)["shop_totals"] == "CHANGED_OUTSIDE"
    assert mini.totals()["c"] == (1, "1.00")
    assert mini.differing() == []


@pytest.mark.extended
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


def leave_files(mini: Mini, name: str, *, with_log: bool = True) -> Path:
    """Leave what a build leaves that is killed between its files and its first commit."""
    folder = mini.root / "warehouse" / "mini" / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ("_delta_log" if with_log else ".")).mkdir(parents=True)
    (folder / "part-00000-7.c000.snappy.parquet").write_bytes(b"cut off")
    return folder


@pytest.mark.extended
@pytest.mark.parametrize("with_log", [True, False])
def test_a_build_killed_before_a_first_commit_is_mended_by_the_next(
    spark: SparkSession, tmp_path: Path, with_log: bool
) -> None:
    mini = Mini(spark, tmp_path)
    mini.deliver("sales", sale("1"), sale("2", "b", "2.50"))
    for name in ("shop_totals", "shop_names", "visit_counts"):
        leave_files(mini, name, with_log=with_log)
    kept = mini.root / "warehouse" / "mini" / "not_a_model"
    kept.mkdir()
    (kept / "part-0.parquet").write_text("of somebody else")

    mini.build()

    assert mini.totals() == {"a": (1, "1.00"), "b": (1, "2.50")}
    assert mini.differing() == []
    assert (kept / "part-0.parquet").exists()


def test_a_new_models_first_refresh_is_mended_by_the_next(mini: Mini) -> None:
    mini.edit("models/new_one.sql", "select shop_id from {{ ref('shop_totals') }}")
    leave_files(mini, "new_one")

    mini.refresh()

    assert len(mini.rows("mini.new_one")) == 2
    assert mini.differing() == []


def test_an_unexpected_error_makes_one_model_full_and_is_told_once(
    mini: Mini, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(run: Any, how: Any) -> Any:
        if run.stored.relation == "mini.shop_totals":
            # Half-way: views are open, and nothing is committed.
            run.views.query(f"select * from {run.views.whole(run.stored)}")
            raise KeyError("customerkey")
        return real_signed(run, how)

    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(strategy, "refresh_signed", fail)
    for number in (3, 4):
        mini.deliver("sales", sale(str(number), "b"))
        mini.deliver("visits", visit("b"))
        mini.refresh()

        assert reasons(mini.newest)["shop_totals"] == "STRATEGY_FAILED"
        assert strategies(mini.newest)["visit_counts"] == "signed"
        assert mini.totals()["b"] == (number - 1, f"{number + 0.5:.2f}")
        assert mini.differing() == []
    told = capsys.readouterr()
    assert (told.out + told.err).count("] strategy_failed ") == 1


BAD = (
    "select shop_id, count(*) as sale_count, sum(amount) as sales_amount, {} as bad"
    " from {} group by 1"
)


def refresh_until_set_aside(mini: Mini) -> RunOutcome:
    """Refresh in one process after the other, each of which fails but the last."""
    for _ in range(_ATTEMPTS - 1):
        with pytest.raises(RefreshError, match="MODEL_FAILED"):
            mini.refresh()
        mini.restart()
        assert mini.newest.snapshot_id == 1
    return mini.refresh()


def test_a_stream_goes_on_without_a_model_that_fails(mini: Mini) -> None:
    stop = Event()
    mini.edit("models/visit_counts.sql", "select nope from {{ ref('shop_totals') }}")
    mini.deliver("sales", sale("3", "c"))

    class Until(Silent):
        def handle(self, event: RunEvent) -> None:
            super().handle(event)
            if isinstance(event, BatchEnded):
                stop.set()

    mini.watcher = Until()
    mini.pipeline()
    pipeline = Pipeline(mini.runtime, mini.watcher.handle, now=lambda: mini.now, stop=stop)
    Stream(pipeline).run(timedelta(milliseconds=100))

    assert len(mini.watcher.retries) == _ATTEMPTS - 1
    assert all("models/visit_counts.sql" in text for text in mini.watcher.retries)
    assert set(mini.newest.set_aside) == {"model.mini.visit_counts"}
    assert mini.totals()["c"] == (1, "1.00")


def test_a_model_that_cannot_be_computed_is_set_aside_and_comes_back_when_it_is_mended(
    mini: Mini,
) -> None:
    good = (mini.project / "models" / "shop_totals.sql").read_text()
    source = "{{ ref('stg_shop__sales') }}"
    mini.edit(
        "models/shop_totals.sql", BAD.format("cast(raise_error('no such shop') as int)", source)
    )
    # Spark can compute it, Delta cannot store it.
    mini.edit("models/unstorable.sql", f"select amount as `Sales, Total` from {source}")
    mini.deliver("sales", sale("3", "c"))
    mini.deliver("visits", visit("c"))

    done = refresh_until_set_aside(mini)

    assert done.exit_code == 1
    snapshot = mini.newest
    failing = {"shop_totals", "shop_ranks", "unstorable"}
    assert {key.rpartition(".")[2] for key in snapshot.set_aside} == failing
    refused = snapshot.set_aside["model.mini.unstorable"].message
    assert "models/unstorable.sql" in refused
    assert "Sales, Total" in refused
    message = snapshot.set_aside["model.mini.shop_ranks"].message
    assert "models/shop_totals.sql" in message
    assert "no such shop" in message
    assert not any(piece in message for piece in ("__", "version as of", " as q", "delta.`"))
    # The others go on, readers see both, and status says how old each is.
    assert len(mini.rows("mini.visit_counts")) == 3
    assert mini.totals() == {"a": (2, "2.00"), "b": (1, "2.50")}
    status = read_status(
        mini.root / "warehouse", every=timedelta(minutes=5), pane=timedelta(minutes=5)
    )
    assert {aside.model for aside in status.set_aside} == set(snapshot.set_aside)
    # One that never was has no age.
    young = {aside.model for aside in status.set_aside if not aside.age_s}
    assert young == {"model.mini.unstorable"}
    assert "set aside model.mini.shop_totals since snapshot 2" in render_status(status)
    # Models that read them report nothing while they wait.
    waiting = {key for key, word in snapshot.tests.items() if word == "waits"}
    read = ("shop_totals", "no_total_is_negative")
    assert waiting == {key for key in snapshot.tests if any(name in key for name in read)}

    mini.deliver("sales", sale("4", "c"))
    mini.refresh()
    # One never had rows, the other one waits with those that it had.
    for name in ("unstorable", "shop_ranks"):
        (mini.project / "models" / f"{name}.sql").unlink()
    mini.edit("models/shop_totals.sql", good)
    mini.refresh()

    assert mini.newest.set_aside == {}
    assert "model.mini.shop_ranks" not in mini.newest.models
    assert mini.totals()["c"] == (2, "2.00")
    assert "waits" not in mini.newest.tests.values()
    assert mini.differing() == []


@pytest.mark.extended
@pytest.mark.parametrize(
    ("select", "words"),
    [
        pytest.param("select sale_id, array() as tags", "nulltype", id="a column without a type"),
        pytest.param("select s.*, amount as Amount", "amount", id="a column twice"),
    ],
)
def test_what_delta_cannot_store_sets_one_model_aside(mini: Mini, select: str, words: str) -> None:
    mini.edit("models/unstorable.sql", f"{select} from {{{{ ref('stg_shop__sales') }}}} as s")
    mini.deliver("sales", sale("3", "c"))

    refresh_until_set_aside(mini)

    (aside,) = mini.newest.set_aside.values()
    assert aside.message.startswith("models/unstorable.sql: ")
    assert words in aside.message.lower()
    assert mini.totals()["c"] == (1, "1.00")
    with pytest.raises(RefreshError, match="MODEL_FAILED") as first:
        mini.build()
    mini.restart()
    with pytest.raises(RefreshError, match="MODEL_FAILED") as again:
        mini.build()
    # The second test is not about the leftovers of the first.
    assert again.value.message == first.value.message
    assert words in again.value.message.lower()


@pytest.mark.extended
def test_a_new_model_that_fails_holds_nobody_up_and_data_may_mend_it(mini: Mini) -> None:
    bad = "if(sum(amount) < 5, 1, cast(raise_error('too much') as int))"
    mini.edit("models/limited.sql", BAD.format(bad, "{{ ref('stg_shop__sales') }}"))
    mini.edit("models/of_limited.sql", "select shop_id from {{ ref('limited') }}")
    mini.deliver("sales", sale("3", "c", "100.00"))

    refresh_until_set_aside(mini)

    assert {key.rpartition(".")[2] for key in mini.newest.set_aside} == {"limited", "of_limited"}
    assert mini.totals()["c"] == (1, "100.00")
    mini.deliver("sales", sale("3", "c", "1.00", updated=1))
    mini.refresh()
    assert mini.newest.set_aside == {}
    assert len(mini.rows("mini.of_limited")) == 3
    assert mini.differing() == []


@pytest.mark.extended
def test_what_a_crash_leaves_is_mended_by_the_next_command(mini: Mini) -> None:
    state = mini.root / "warehouse" / "_livemart"
    target = mini.project / "target" / "livemart"
    model, landed = (
        mini.root / "warehouse" / name for name in ("mini/shop_totals", "bronze/sales")
    )
    (manifests,) = (folder for folder in (state / "files").iterdir() if folder.is_dir())
    whole = (target / "partial_parse.msgpack").read_bytes()
    left: dict[str, dict[Path, bytes]] = {
        "drafts of a commit, and files that it would have named": {
            model / "_delta_log" / ".00000000000000000009.json.7.tmp": b"{",
            model / "part-7.parquet": b"cut off",
            landed / "part-7.parquet": b"cut off",
            state / "snapshots" / "part-7.parquet": b"cut off",
        },
        "drafts of state files": {
            state / ".views.json.new": b"{",
            state / ".holder.json.new": b"{",
            manifests / ".9.json.new": b"{",
            state / "checkpoint" / ".livemart_epoch.json.new": b"{",
            state / "checkpoint" / "offsets" / ".9.7.tmp": b"v1",
            state / "checkpoint" / "commits" / ".9.7.tmp": b"v1",
        },
        "what a holder says of itself": {state / "holder.json": b'{"pid": 1, "command"'},
        "torn views": {state / "views.json": b'{"mini.stg": "select'},
        "a spool of a bulk load": {
            state / "staging" / "bronze.sales" / "part-7.parquet": b"cut off",
            state / "staging" / "bronze.sales" / "_temporary" / "0" / "part-7.parquet": b"x",
        },
        "what a terminal is prepared with": {
            state / "connect_token": b"",
            state / "conf" / "spark-defaults.conf": b"spark.",
        },
        "torn files of dbt": {
            target / "partial_parse.msgpack": whole[: len(whole) // 2],
            target / "manifest.json": b"{",
            target / "graph.gpickle": b"",
            target / "compiled" / "mini" / "models" / "shop_totals.sql": b"select",
        },
        "no dbt at all": {target / "partial_parse.msgpack": b""},
    }
    for number, (what, files) in enumerate(left.items()):
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        mini.restart()
        mini.deliver("sales", sale(f"{number}-new", "n"))

        done = mini.refresh()

        assert done.exit_code == 0, what
        assert mini.totals()["n"] == (number + 1, f"{number + 1}.00"), what
    assert mini.differing() == []


@pytest.mark.extended
def test_a_new_epoch_that_was_cut_off_names_the_one_command(mini: Mini) -> None:
    checkpoint = mini.root / "warehouse" / "_livemart" / "checkpoint"
    checkpoint.rename(checkpoint.with_name("checkpoint.replaced-7"))
    checkpoint.mkdir()

    with pytest.raises(StateError, match="CHECKPOINT_LOST") as raised:
        mini.refresh()

    assert "`build --new-epoch`" in raised.value.hint
    mini.build(new_epoch=True)
    assert mini.differing() == []
