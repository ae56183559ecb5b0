"""Build, refresh and verify on one small project: what moves, what is carried, what is rebuilt."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dbt.artifacts.schemas.manifest import WritableManifest
from dbt.artifacts.schemas.run import RunResultsArtifact

from livemart.errors import ConfigError, PlanError, RefreshError
from livemart.inspect.recomputed_tables import RecomputedTables
from livemart.inspect.verify import render_comparison, verify_models
from livemart.project.dbt import Dbt
from livemart.run.idle import has_nothing_to_do
from livemart.state.snapshots import LEFT_OUT
from tests.integration.mini import Mini, sale, visit
from tests.project_run import NOON, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_refresh_of_an_empty_warehouse_is_a_build_of_one_snapshot(mini: Mini) -> None:
    snapshot = mini.newest
    assert (snapshot.snapshot_id, snapshot.kind, snapshot.status) == (1, "build", "published")
    assert snapshot.as_of == NOON + timedelta(minutes=5)
    assert set(snapshot.sources) == {"bronze.sales", "bronze.visits", "livemart.clock"}
    assert set(snapshot.tests.values()) == {"pass"}
    assert snapshot.landed["bronze.sales"].landed == 3
    assert mini.totals() == {"a": (2, "2.00"), "b": (1, "2.50")}
    assert mini.differing() == []


# 4 s.
@pytest.mark.extended
def test_a_wider_declared_type_rebuilds_the_models_that_read_the_column_and_no_others(
    mini: Mini,
) -> None:
    sources = (mini.project / "models/_sources.yml").read_text()
    mini.edit("models/_sources.yml", sources.replace("decimal(10,2)", "decimal(12,2)"))
    mini.deliver("sales", sale("4", "b", "1234567890.12"))

    mini.refresh()

    assert mini.totals() == {"a": (2, "2.00"), "b": (2, "1234567892.62")}
    told = {name: reason for name, reason in reasons(mini.newest).items() if reason}
    assert told.keys() == {"shop_totals", "shop_last_hour", "shop_ranks"}
    assert strategies(mini.newest)["visit_counts"] == "unchanged"
    assert mini.newest.landed["bronze.sales"].dead_letters == 0
    # A view keeps the types that its inputs had when it was made.
    amount = mini.spark.table("mini.stg_shop__sales").schema["amount"].dataType
    assert amount.simpleString() == "decimal(12,2)"
    assert mini.differing() == []


# 3 s.
def test_a_build_and_a_refresh_leave_artifacts_that_dbt_reads(mini: Mini) -> None:
    path = str(mini.project / "target" / "run_results.json")
    mini.deliver("visits", visit("c"))

    mini.refresh()

    results = RunResultsArtifact.read_and_check_versions(path)
    by_name = {result.unique_id.split(".")[2]: result for result in results.results}
    assert {result.unique_id for result in results.results} == {
        *(key for key, model in mini.runtime.project.models.items() if model.is_stored),
        *mini.runtime.project.tests,
    }
    assert by_name["shop_totals"].message == "unchanged"
    assert {str(result.status) for result in results.results} == {"success", "pass"}
    assert results.args["invocation_command"] == "livemart refresh"


# 4 s.
def test_a_refresh_that_would_find_nothing_needs_neither_spark_nor_dbt(mini: Mini) -> None:
    def is_idle() -> bool:
        return has_nothing_to_do(mini.runtime.settings, lambda: mini.now)

    mini.refresh()
    assert is_idle()
    mini.deliver("visits", visit("c"))
    assert not is_idle()

    mini.refresh()

    assert is_idle()
    mini.now += timedelta(minutes=5)
    assert not is_idle()


# 3 s.
def test_a_project_without_an_edit_is_not_read_by_dbt_again(
    mini: Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = mini.project / "target" / "manifest.json"
    path.unlink()
    mini.deliver("visits", visit("c"))
    mini.restart()
    with monkeypatch.context() as patch:
        patch.setattr(Dbt, "load", lambda dbt: pytest.fail("dbt reads the project"))

        mini.refresh()

    assert mini.newest.snapshot_id == 2
    assert mini.differing() == []
    written = WritableManifest.read_and_check_versions(str(path))
    assert written.nodes.keys() >= mini.runtime.project.models.keys()


# 8 s.
def test_what_a_selection_leaves_out_is_set_aside_until_a_pass_without_it(mini: Mini) -> None:
    before = mini.totals()
    mini.deliver("sales", sale("9", "c", "5.00"))

    done = mini.pipeline(exclude=("shop_totals",)).refresh()

    aside = mini.newest.set_aside
    assert {key.rpartition(".")[2] for key in aside} == {"shop_totals", "shop_ranks"}
    assert {it.cause for it in aside.values()} == {"model.mini.shop_totals"}
    assert {it.message for it in aside.values()} == {LEFT_OUT}
    assert (done.exit_code, mini.totals()) == (0, before)
    assert [row["shop_id"] for row in mini.rows("mini.shop_last_hour")][-1] == "c"
    # Waiting models cause no additional work.
    known = mini.newest.snapshot_id
    mini.pipeline(exclude=("shop_totals",)).refresh()
    assert mini.newest.snapshot_id == known

    done = mini.pipeline(exclude=()).refresh()

    assert (done.exit_code, mini.newest.set_aside) == (0, {})
    assert mini.totals()["c"] == (1, "5.00")
    assert mini.differing() == []
    with pytest.raises(ConfigError, match="SELECTION_EMPTY: --select nothing: names no model"):
        mini.pipeline(select=("nothing",)).refresh()
    mini.deliver("sales", sale("10", "c", "5.00"))
    with pytest.raises(ConfigError, match="SELECTION_EMPTY: --select shop_ranks: what it names"):
        mini.pipeline(select=("shop_ranks",)).refresh()


@pytest.mark.extended
def test_a_selection_publishes_nothing_that_a_test_holds(mini: Mini) -> None:
    mini.edit(
        "tests/few_ranks.sql",
        "select * from {{ ref('shop_ranks') }} where shop_id = 'c' "
        "and exists (select 1 from {{ ref('visit_counts') }})",
    )
    mini.deliver("sales", sale("9", "c", "5.00"))
    assert mini.refresh().exit_code == 1
    held, seen = mini.newest, mini.rows("mini.shop_ranks")
    assert held.status == "held"

    for amount in ("6.00", "7.00"):
        mini.deliver("sales", sale("10", "d", amount, updated=float(amount)))
        # The test reads what moves as well.
        mini.deliver("visits", visit("d"))
        done = mini.pipeline(exclude=("shop_totals",)).refresh()

        assert (done.exit_code, mini.newest.status) == (1, "held")
        assert mini.rows("mini.shop_ranks") == seen
    assert mini.newest.snapshot_id == held.snapshot_id + 2


@pytest.mark.extended
def test_a_first_build_leaves_out_what_is_not_selected(unbuilt: Mini) -> None:
    unbuilt.edit(
        "models/shop_view.sql",
        "{{ config(materialized='view') }} select * from {{ ref('shop_totals') }}",
    )
    done = unbuilt.pipeline(exclude=("shop_totals",)).refresh()

    snapshot = unbuilt.newest
    assert (done.exit_code, snapshot.kind) == (0, "build")
    assert {key.rpartition(".")[2] for key in snapshot.set_aside} == {"shop_totals", "shop_ranks"}
    assert not unbuilt.warehouse.exists("mini.shop_totals")
    unbuilt.pipeline(exclude=("shop_totals",)).refresh()
    assert unbuilt.newest == snapshot

    unbuilt.pipeline(exclude=()).refresh()

    assert unbuilt.newest.set_aside == {}
    assert unbuilt.differing() == []


def test_a_refresh_moves_what_changed_and_carries_the_rest(mini: Mini) -> None:
    before = mini.newest
    mini.deliver("visits", visit("c"))

    done = mini.refresh()

    snapshot = mini.newest
    moved = {
        unique_id.rpartition(".")[2]
        for unique_id, state in snapshot.models.items()
        if state.version != before.models[unique_id].version
    }
    assert done.exit_code == 0
    assert snapshot.kind == "refresh"
    assert moved == {"visit_counts"}
    assert mini.differing() == []


def test_corrections_deletes_and_late_records_come_out_as_in_a_batch(mini: Mini) -> None:
    mini.deliver(
        "sales",
        sale("1", "b", "5.00", updated=1),
        sale("2", "b", updated=2, op="d"),
        sale("4", "c", "7.00", minutes=-3000),
    )

    mini.refresh()

    assert mini.totals() == {"a": (1, "1.00"), "b": (1, "5.00"), "c": (1, "7.00")}
    assert mini.differing() == []


def test_a_window_slides_without_any_record(mini: Mini) -> None:
    mini.now += timedelta(minutes=40)

    mini.refresh()

    assert mini.newest.as_of == NOON + timedelta(minutes=45)
    assert len(mini.rows("mini.shop_last_hour")) == 2
    mini.now += timedelta(minutes=10)
    mini.refresh()
    assert mini.rows("mini.shop_last_hour") == []
    assert mini.differing() == []


def test_nothing_waiting_and_the_same_pane_commits_nothing(mini: Mini) -> None:
    before = {
        path: path.stat().st_mtime_ns
        for path in (mini.root / "warehouse").glob("*/*/_delta_log/*.json")
    }

    done = mini.refresh()

    after = {
        path: path.stat().st_mtime_ns
        for path in (mini.root / "warehouse").glob("*/*/_delta_log/*.json")
    }
    assert done.exit_code == 0
    assert [outcome.snapshot for outcome in done.outcomes] == [None]
    assert after == before


def test_dead_letters_alone_make_a_snapshot_that_counts_them(mini: Mini) -> None:
    (mini.landing / "sales" / "9.jsonl").write_text("no json\n")

    mini.refresh()

    counts = mini.newest.landed["bronze.sales"]
    assert mini.newest.snapshot_id == 2
    assert (counts.produced, counts.landed, counts.dead_letters) == (1, 0, 1)


def test_a_model_with_other_sql_is_rebuilt_and_a_comment_changes_nothing(mini: Mini) -> None:
    mini.edit(
        "models/visit_counts.sql",
        "-- busy\nSELECT shop_id, count(*) as visit_count\n"
        "from {{ source('shop', 'visits') }} group by 1",
    )

    mini.refresh()
    assert mini.newest.snapshot_id == 1

    mini.edit(
        "models/visit_counts.sql",
        "select shop_id, 2 * count(*) as visit_count\n"
        "from {{ source('shop', 'visits') }} group by 1",
    )
    mini.refresh()

    assert reasons(mini.newest)["visit_counts"] == "FINGERPRINT_CHANGED"
    assert [word for word in strategies(mini.newest).values()].count("full") == 1
    assert mini.differing() == []


def test_a_new_model_is_built_and_a_removed_one_leaves_the_log(mini: Mini) -> None:
    mini.edit("models/shop_count.sql", "select count(*) as shops from {{ ref('shop_totals') }}")
    (mini.project / "models" / "shop_ranks.sql").unlink()

    mini.refresh()

    assert reasons(mini.newest)["shop_count"] == "NEW_MODEL"
    assert "shop_ranks" not in strategies(mini.newest)
    assert mini.differing() == []


def test_another_seed_is_loaded_and_its_readers_follow(mini: Mini) -> None:
    mini.edit("seeds/shop_names.csv", "shop_id,shop_name\na,Ann's\n")

    mini.refresh()

    names = {row["shop_id"]: row["shop_name"] for row in mini.rows("mini.shop_ranks")}
    assert names == {"a": "Ann's", "b": None}
    assert mini.differing() == []


def test_a_model_written_from_outside_is_rebuilt(mini: Mini, spark: SparkSession) -> None:
    spark.sql("update mini.shop_totals set sale_count = 99")
    mini.restart()

    mini.refresh()

    assert reasons(mini.newest)["shop_totals"] == "CHANGED_OUTSIDE"
    assert mini.totals()["a"] == (2, "2.00")
    assert mini.differing() == []


def test_a_model_whose_folder_is_gone_is_rebuilt(mini: Mini) -> None:
    shutil.rmtree(mini.root / "warehouse" / "mini" / "visit_counts")
    mini.restart()

    mini.refresh()

    assert reasons(mini.newest)["visit_counts"] == "CHANGED_OUTSIDE"
    assert mini.differing() == []


def test_a_failed_test_holds_the_snapshot_until_the_data_is_right_again(mini: Mini) -> None:
    mini.deliver("sales", sale("5", "b", "-9.00"))

    held = mini.refresh()

    assert held.exit_code == 1
    assert mini.newest.status == "held"
    # At the version that is tested, which no reader sees.
    failed = held.outcomes[-1].checks["test.mini.no_total_is_negative"]
    assert (failed.failures, failed.place) == (1, "tests/no_total_is_negative.sql:1")
    assert failed.rows == ("shop_id=b, sale_count=2, sales_amount=-6.50",)
    assert mini.totals()["b"] == (1, "2.50")
    mini.deliver("visits", visit("c"))
    assert mini.refresh().exit_code == 1
    mini.deliver("sales", sale("5", "b", "9.00", updated=1))
    assert mini.refresh().exit_code == 0
    assert mini.totals()["b"] == (2, "11.50")
    assert mini.differing() == []


def test_a_held_snapshot_is_published_without_a_new_record(mini: Mini) -> None:
    test = mini.project / "tests" / "no_total_is_negative.sql"
    text = test.read_text()
    mini.deliver("sales", sale("5", "b", "-9.00"))
    mini.refresh()

    still = mini.refresh()
    assert (still.exit_code, mini.newest.snapshot_id) == (1, 2)

    mini.edit("tests/no_total_is_negative.sql", text + " and shop_id <> 'b'")
    assert mini.refresh().exit_code == 0
    assert mini.totals()["b"] == (2, "-6.50")

    mini.deliver("sales", sale("6", "a", "-90.00"))
    assert mini.refresh().exit_code == 1
    test.unlink()
    mini.restart()
    assert mini.refresh().exit_code == 0
    assert (mini.newest.status, mini.newest.snapshot_id) == ("published", 5)
    assert mini.refresh().exit_code == 0
    assert mini.newest.snapshot_id == 5


def test_a_snapshot_held_by_a_table_that_no_batch_looks_at_is_published_when_that_is_mended(
    mini: Mini,
) -> None:
    mini.spark.sql("create table mini.closed_shops using delta as select 'b' as shop_id")
    mini.edit(
        "tests/open_shops.sql",
        "select * from mini.closed_shops join mini.shop_totals using (shop_id)",
    )
    assert mini.refresh().exit_code == 1
    assert mini.refresh().exit_code == 1

    mini.spark.sql("delete from mini.closed_shops")

    assert mini.refresh().exit_code == 0
    assert mini.newest.status == "published"


def test_a_failing_test_of_severity_warn_is_recorded_only(mini: Mini) -> None:
    mini.deliver("visits", visit("nowhere"))

    done = mini.refresh()

    assert done.exit_code == 0
    assert sorted(mini.newest.tests.values()).count("warn") == 1


def test_tests_of_unchanged_tables_are_not_run(mini: Mini) -> None:
    mini.deliver("visits", visit("c"))

    done = mini.refresh()

    how = {name.split(".")[2]: check.how for name, check in done.outcomes[-1].checks.items()}
    assert how["not_null_shop_totals_shop_id"] == "unchanged"
    assert set(how.values()) == {"unchanged", "changes"}


def test_an_edited_test_runs_in_full_although_nothing_it_reads_changed(mini: Mini) -> None:
    mini.edit(
        "tests/no_total_is_negative.sql",
        "select * from {{ ref('shop_totals') }} where sales_amount < 1000",
    )

    done = mini.refresh()

    how = {name.split(".")[2]: check.how for name, check in done.outcomes[-1].checks.items()}
    assert done.exit_code == 1
    assert how.pop("no_total_is_negative") == "full"
    assert set(how.values()) == {"unchanged"}
    assert mini.refresh().outcomes[-1].snapshot is None


def test_a_model_that_fails_publishes_nothing(mini: Mini) -> None:
    mini.edit("models/visit_counts.sql", "select no_such_column from {{ ref('shop_totals') }}")

    with pytest.raises(RefreshError, match=r"MODEL_FAILED: .*visit_counts.sql"):
        mini.refresh()

    assert mini.newest.snapshot_id == 1


def test_a_strict_model_refuses_to_fall_back_in_a_batch(mini: Mini) -> None:
    mini.edit(
        "models/shares.sql",
        "{{ config(meta={'livemart': {'refresh': 'strict'}}) }}\n"
        "select shop_id, sale_count, as_of\n"
        "from {{ ref('shop_totals') }} cross join {{ source('livemart', 'clock') }}",
    )
    mini.refresh()
    mini.now += timedelta(minutes=5)

    with pytest.raises(PlanError, match=r"models/shares\.sql: .*SCALAR_SUBQUERY_CHANGED") as caught:
        mini.refresh()

    assert caught.value.code == "POLICY_NOT_MET"
    assert mini.newest.snapshot_id == 2


def test_selected_models_are_built_anew_and_the_others_refreshed(mini: Mini) -> None:
    mini.deliver("visits", visit("c"))

    mini.refresh(selected=frozenset({"model.mini.shop_totals"}))

    assert reasons(mini.newest)["shop_totals"] == "SELECTED"
    assert len(mini.rows("mini.visit_counts")) == 3
    assert mini.differing() == []


def test_as_of_may_not_go_back(mini: Mini) -> None:
    with pytest.raises(ConfigError, match="AS_OF_BACKWARDS"):
        mini.pipeline(as_of="2026-02-01").refresh()


@pytest.mark.extended
def test_event_time_moves_the_clock_if_asked_to(unbuilt: Mini) -> None:
    unbuilt.pipeline(clock="event_time").build()

    assert unbuilt.newest.as_of == NOON + timedelta(minutes=-5)


@pytest.mark.extended
def test_verify_runs_sql_that_only_spark_can_take_apart(unbuilt: Mini, spark: SparkSession) -> None:
    """Spark 4.2 reads all of these, sqlglot 30.30 none; a refresh runs them by their own text."""
    visits, totals = "{{ source('shop', 'visits') }}", "{{ ref('shop_totals') }}"
    texts = {
        "pipes": f"from {visits} |> where shop_id = 'a' |> select shop_id",
        "seen": "{{ config(materialized='view') }} " + f"from {visits} as v |> select v.shop_id",
        "of_view": "select visits.shop_id from {{ ref('seen') }} as visits |> where true",
        "paths": f"select shop_id, j:a::int as a from (select *, parse_json('{{\"a\": 1}}') as j"
        f" from {totals}) |> where shop_id in (select shop_id from {visits})",
        "exploded": f"select t.shop_id, e.pos from {totals} as t,"
        " lateral variant_explode(parse_json('[1, 2]')) as e",
        "nearest": f"select t.shop_id, v.shop_id as other from {totals} as t"
        f" join {visits} as v exact nearest 1 by distance abs(length(t.shop_id) - 1)",
        "above": "select shop_id from {{ ref('pipes') }}",
    }
    for name, text in texts.items():
        unbuilt.edit(f"models/{name}.sql", text)
    unbuilt.build()

    found = {comparison.model: comparison for comparison in unbuilt.verify()}

    for name in texts.keys() - {"seen"}:
        assert found[name].is_equal, found[name]
        assert found[name].differences is not None
    assert found["pipes"].rows == 2

    # A row too many is known to be wrong, but where a tie may bring another one.
    newest = unbuilt.newest
    states = dict(newest.models)
    for name, row in {"pipes": "'z'", "nearest": "'z', 'z'"}.items():
        spark.sql(f"insert into mini.{name} values ({row})")
        version = unbuilt.warehouse.version(f"mini.{name}")
        unique_id = f"model.mini.{name}"
        states[unique_id] = replace(states[unique_id], version=version)
    wrong = replace(newest, models=states)
    project = unbuilt.pipeline().runtime.project
    found = {it.model: it for it in verify_models(spark, unbuilt.warehouse, project, wrong)}

    assert found["pipes"].is_different
    assert (found["nearest"].is_equal, found["nearest"].is_different) == (False, False)
    assert "`nearest`" in found["nearest"].note
    # It reads what came out now.
    assert found["above"].is_equal


# 2 s.
def test_verify_goes_on_behind_a_model_that_cannot_be_recomputed(
    mini: Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = RecomputedTables.recompute

    def breaks(tables: RecomputedTables, session: SparkSession, relation: str, *others: Any) -> Any:
        if relation == "mini.shop_totals":
            raise ArithmeticError("out of paper")
        return real(tables, session, relation, *others)

    monkeypatch.setattr(RecomputedTables, "recompute", breaks)

    found = {comparison.model: comparison for comparison in mini.verify()}

    assert {name for name, each in found.items() if not each.is_equal} == {
        "shop_totals",
        "shop_ranks",
    }
    assert not any(each.is_different for each in found.values())
    assert found["shop_totals"].note == "cannot be recomputed: out of paper"
    assert found["shop_ranks"].note == "reads what could not be recomputed: mini.shop_totals"
    assert found["visit_counts"].differences is not None


@pytest.mark.parametrize(
    "most_rows",
    [
        pytest.param(100_000, id="in memory"),
        pytest.param(0, id="stored", marks=pytest.mark.extended),
    ],
)
def test_verify_finds_a_wrong_row(
    mini: Mini, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr("livemart.spark.quick_session.FEW_STATEMENT_ROWS", most_rows)
    spark.sql("update mini.shop_ranks set sales_amount = 3.00 where shop_id = 'a'")
    newest = mini.newest
    unique_id = "model.mini.shop_ranks"
    version = mini.warehouse.version("mini.shop_ranks")
    wrong = replace(newest.models[unique_id], version=version)
    tampered = replace(newest, models={**newest.models, unique_id: wrong})
    runtime = mini.pipeline().runtime

    found = {
        comparison.model: comparison
        for comparison in verify_models(spark, mini.warehouse, runtime.project, tampered)
    }

    assert [name for name, each in found.items() if not each.is_equal] == ["shop_ranks"]
    text = render_comparison(found["shop_ranks"])
    assert "shop_ranks  DIFFERENT" in text
    assert "mean_amount within 1e-09" in text
    assert "sales_amount=3.00" in text
