"""The benchmarks stay runnable: each command at its smallest size, with its own comparison."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.order_logs import LOG_KINDS
from tests.services.fixtures import not_installed

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.processes, pytest.mark.extended]


def test_the_refresh_benchmark_runs_and_its_answers_are_equal(tmp_path: Path) -> None:
    figures = _figures(
        *("refresh", "--folder", str(tmp_path)),
        *("--small=500", "--large=1000", "--batch=20", "--warm-up=0", "--batches=1"),
    )

    assert figures["answers_equal"] == 1
    assert figures["refresh_growth_1k_500"] > 0
    assert figures["model_1k_ms/restaurant_top_dishes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_landing_benchmark_runs_and_all_records_come_in(tmp_path: Path) -> None:
    figures = _figures("landing", "--folder", str(tmp_path), "--records=300")

    assert figures["landing_whole"] == 1
    assert figures["landing_json_keyed_over_plain"] > 0
    assert figures["landing_300_parquet_append_per_s"] > 0
    left_out = [kind for kind in LOG_KINDS if f"landing_300_{kind}_per_s" not in figures]
    if left_out:
        not_installed(f"brokers of {', '.join(left_out)} cannot be had")
    assert figures["landing_kafka_over_plain"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_storages_runs_and_its_answers_are_equal(tmp_path: Path) -> None:
    figures = _figures(
        *("storage", "--folder", str(tmp_path)),
        *("--orders=500", "--batch=20", "--warm-up=0", "--batches=1"),
    )

    assert figures["storage_equal"] == 1
    assert figures["refresh_bucket_over_disk"] > 0
    assert 20 < figures["requests_per_batch"] < 2_000
    assert figures["bytes_per_batch"] > figures["requests_per_batch"]
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_rules_runs_and_its_rows_are_equal(tmp_path: Path) -> None:
    rules = ("group_count_sum", "join_dimension", "clock_rows", "hours_running", "limit_of_groups")
    figures = _figures(
        *("rules", "--folder", str(tmp_path), "--small=1000", "--large=2000"),
        *("--warm-up=0", "--batches=1", "--rules", *rules),
    )

    assert figures["rules_equal"] == 1
    for name in rules:
        assert figures[f"rule_{name}_full_over_refresh"] > 0
        assert figures[f"rule_{name}_growth"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_histories_runs_and_its_rows_are_equal(tmp_path: Path) -> None:
    figures = _figures(
        *("histories", "--folder", str(tmp_path), "--changes", "400", "800"),
        *("--accounts=5", "--warm-up=0", "--batches=1"),
    )

    assert figures["histories_equal"] == 1
    assert figures["histories_growth_800_400"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_many_models_runs_and_its_rows_are_equal(tmp_path: Path) -> None:
    figures = _figures(
        *("models", "--folder", str(tmp_path), "--models=20", "--planned=20", "--rows=300"),
        *("--records=20", "--warm-up=0", "--batches=1", "--rounds=0"),
    )

    assert figures["models_equal"] == 1
    assert figures["tick_20_models_s"] > figures["tick_idle_s"] > 0
    assert figures["plan_20_models_s/fresh"] > figures["plan_20_models_s/kept"] > 0
    for name in ("small_full_over_region", "edit_one_over_plain", "duckdb_over_tick"):
        assert figures[name] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_serving_benchmark_runs_from_a_file_to_the_page(tmp_path: Path) -> None:
    figures = _figures(
        *("serve", "--folder", str(tmp_path), "--restaurants=5", "--rate=20", "--seconds=3"),
        *("--warm-up=1", "--every=2", "--clients=10", "--snapshots=2", "--pipeline", "--files=1"),
        *("--idle=20", "--greedy=5"),
    )

    assert figures["read_p99_ms"] > 0
    assert figures["read_beside_others_over_alone_p95"] > 0
    assert figures["read_beside_quick_over_alone_p95"] > 0
    assert figures["beside_quick_idle_connections_most"] == 20
    assert figures["push_10_clients_s"] > 0
    assert figures["file_to_page_p50_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_commands_runs_with_news_and_without(tmp_path: Path) -> None:
    figures = _figures(
        *("command", "--folder", str(tmp_path), "--rounds=1", "--orders=10", "--days=1")
    )

    assert figures["refresh_command_s"] > figures["refresh_idle_command_s"] > 0
    assert figures["start_dbt_s"] > 0
    assert figures["start_query_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_benchmark_of_what_batches_leave_behind_runs(tmp_path: Path) -> None:
    figures = _figures(
        *("soak", "--folder", str(tmp_path), "--orders=300", "--batch=10", "--at", "1", "2"),
        *("--upkeep=1", "--retention=1"),
    )

    assert figures["answers_equal"] == 1
    assert figures["store_snapshots_2"] == 3
    assert figures["python_rss_mb_2"] > 0
    assert figures["jvm_rss_mb_2"] > 0
    assert figures["versions_growth"] > 0
    assert list(tmp_path.iterdir()) == []


def _figures(bench: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", f"bench.{bench}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["figure"]: line["value"] for line in lines}
