"""A failed run, and the sums over all runs, are measured for Prometheus."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from livemart.state.last_run import (
    LastRun,
    MemoryUse,
    NewestBatch,
    RunFailure,
    RunTotals,
    TestStanding,
    keep_last_run,
)
from tests.serve.apps import Site, make_settings, site
from tests.store.stores import NOON

ROOT = Path(__file__).resolve().parents[3]
OLD = NOON - timedelta(hours=2)
TEST = "test.shop.unique_totals.1a"
FAILED_RUN = LastRun(
    "refresh",
    4711,
    OLD,
    OLD,
    ended_at=OLD + timedelta(seconds=9),
    ending="failed",
    failure=RunFailure(OLD, "MODEL_FAILED", ("model.shop.totals",), "models/totals.sql: secret"),
    totals=RunTotals(5, 12.5, 2, {"bronze.orders": 40}, {"bronze.orders": 3}),
    newest=NewestBatch(
        9,
        True,
        2.5,
        {TEST: TestStanding("fail", 7), "test.shop.waits": TestStanding("waits", None)},
        {"bronze.orders": 2},
    ),
    memory=MemoryUse(600_000_000, 1_900_000_000),
)
# By name, and labels if there are any.
OF_FAILED_RUN = {
    "last_run_success": 0,
    "last_run_begin_timestamp_seconds": OLD.timestamp(),
    "last_run_end_timestamp_seconds": OLD.timestamp() + 9,
    "last_failure_timestamp_seconds MODEL_FAILED model.shop.totals": OLD.timestamp(),
    "batches_total": 5,
    "batch_duration_seconds_total": 12.5,
    "failed_batches_total": 2,
    "landed_rows_total bronze.orders": 40,
    "dead_letters_total bronze.orders": 3,
    "last_batch_duration_seconds": 2.5,
    "snapshot_held": 1,
    "failed_tests fail": 1,
    "failed_tests error": 0,
    "failed_tests warn": 0,
    f"test_failed_rows {TEST}": 7,
    "drifted_fields bronze.orders": 2,
    "memory_bytes python": 600_000_000,
    "memory_bytes java": 1_900_000_000,
}


def of_runs(served: Site) -> dict[str, float]:
    """Return what is measured of runs, by name and labels."""
    server = (
        "request",
        "event",
        "stream",
        "source",
        "store",
        "staleness",
        "model",
        "strategy",
        "connections",
        "waiting_pulls",
        "waiting_requests",
        "refused_pulls",
    )
    return {
        " ".join([sample.name.removeprefix("livemart_"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(served.client.get("/metrics").text)
        for sample in family.samples
        if not sample.name.removeprefix("livemart_").startswith((*server, "snapshot_id"))
    }


def test_a_failed_run_and_what_runs_have_done_are_measured(tmp_path: Path) -> None:
    keep_last_run(make_settings(tmp_path).warehouse, FAILED_RUN)

    with site(tmp_path) as served:
        measures = of_runs(served)
        text = served.client.get("/metrics").text

    assert measures == OF_FAILED_RUN
    # Messages quote rows and paths: they are no measurement.
    assert "secret" not in text


def test_where_no_run_is_known_none_is_measured(tmp_path: Path) -> None:
    with site(tmp_path) as served:
        assert of_runs(served) == {}


def test_every_measurement_is_documented(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    keep_last_run(make_settings(tmp_path).warehouse, FAILED_RUN)
    with site(tmp_path) as served:
        served.client.get("/healthz")
        families = list(text_string_to_metric_families(served.client.get("/metrics").text))

    # The parser names a counter without its last word.
    names = {it.name + ("_total" if it.type == "counter" else "") for it in families}
    names = {
        name
        for name in names
        if not name.startswith("livemart_source_") and not name.endswith("_created")
    }
    assert sorted(name for name in names if f"`{name}`" not in text) == []
    # And back.
    documented = set(re.findall(r"`(livemart_[a-z_]+)`", text))
    assert sorted(documented - names - {"livemart_last_run"}) == []
