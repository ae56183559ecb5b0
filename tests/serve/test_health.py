"""Readers see models that are set aside, and errors that caused a full recompute."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from livemart.land.sources.files.stream import place_slots
from livemart.land.sources.log_looks import LogLooks
from livemart.project.graph import Project
from livemart.state.last_run import (
    LastRun,
    MemoryUse,
    NewestBatch,
    RunFailure,
    RunTotals,
    TestStanding,
    keep_last_run,
)
from livemart.state.places import StateFolder
from livemart.state.project_graph import keep_graph
from livemart.state.snapshots import SetAside, Snapshot
from tests.serve.apps import Site, make_settings, site
from tests.store.stores import NOON, fill_store, reference_tables

METRICS = "restaurant_order_metrics"
OLD = NOON - timedelta(hours=2)
ROOT = Path(__file__).resolve().parents[2]
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


def measured(served: Site, name: str) -> dict[str, float]:
    """Return a measurement by model."""
    text = served.client.get("/metrics").text
    return {
        sample.labels["model"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def of_sources(served: Site) -> dict[str, dict[str, float]]:
    """Return what is measured of sources, by measurement and source, or source and partition."""
    measures: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(served.client.get("/metrics").text):
        for sample in family.samples:
            if "source" in sample.labels:
                label = " ".join(
                    sample.labels[name] for name in sorted(sample.labels, reverse=True)
                )
                measures.setdefault(sample.name, {})[label] = sample.value
    return measures


def troubled(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with a model that failed, one that waits and one whose strategy failed."""
    failed, fell = f"model.test.{METRICS}", "model.test.restaurant_top_dishes"
    return replace(
        snapshot,
        models={**snapshot.models}
        | {fell: replace(snapshot.models[fell], strategy="full", reason="STRATEGY_FAILED")},
        set_aside={
            failed: SetAside(2, OLD, "f", failed, "no"),
            "model.test.never": SetAside(3, None, "f", failed, "no"),
        },
    )


def test_a_model_that_is_set_aside_tells_its_age_wherever_it_is_read(tmp_path: Path) -> None:
    tables = reference_tables()
    with site(tmp_path, page=True, now=lambda: NOON) as served:
        for number in (4, 5):
            fill_store(served.url, tables, snapshot_id=number, mark=troubled, now=NOON)
        # The same snapshot once more, with another model: its failure is counted once.
        more = {**tables, "besides": pa.table({"n": [1]})}
        fill_store(served.url, more, snapshot_id=5, mark=troubled, now=NOON)
        served.until(lambda: served.shows(5))

        ages = measured(served, "livemart_model_age_seconds")
        counts = measured(served, "livemart_strategy_failures")
        rows = served.client.get(f"/v1/models/{METRICS}").json()
        other = served.client.get("/v1/models/besides").json()
        csv = served.client.get(f"/v1/models/{METRICS}", headers={"Accept": "text/csv"})
        listed = {
            model["name"]: model for model in served.client.get("/v1/models").json()["models"]
        }
        owner = served.client.get("/v1/restaurants/r1/metrics").json()
        page = served.client.get("/r/r1").text

        assert ages[METRICS] == 7200
        # A model without rows has no known age.
        assert ages["model.test.never"] != ages["model.test.never"]
        assert counts == {"restaurant_top_dishes": 2}
        age = {"set_aside_since": 2, "refreshed_at": OLD.isoformat().replace("+00:00", "Z")}
        assert {key: rows.get(key) for key in age} == age
        assert {key: owner.get(key) for key in age} == age
        assert {key: listed[METRICS].get(key) for key in age} == age
        assert not age.keys() & (other.keys() | listed["besides"].keys())
        assert csv.headers["Livemart-Refreshed-At"] == age["refreshed_at"]
        assert f'data-refreshed-at="{age["refreshed_at"]}"' in page

        fill_store(served.url, tables, snapshot_id=6, now=NOON)
        served.until(lambda: served.shows(6))

        assert measured(served, "livemart_model_age_seconds") == {}
        assert measured(served, "livemart_strategy_failures") == {"restaurant_top_dishes": 2}
        assert "set_aside_since" not in served.client.get(f"/v1/models/{METRICS}").json()


def test_what_waits_for_each_source_is_measured_in_records_bytes_and_seconds(
    tmp_path: Path,
) -> None:
    settings = make_settings(tmp_path)
    checkpoint = StateFolder(tmp_path / "warehouse").checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"s.files": "files/*", "s.gone": "gone/*"})
    path = Path(str(settings.landing)) / "files" / "1"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 70)
    os.utime(path, (OLD.timestamp(), OLD.timestamp()))
    looks = LogLooks(settings.warehouse, ["s.log", "s.away"])
    looks.answered(["s.log"], NOON, {"p0": 20, "p1": 9}, {"p0": 5, "p1": 4}, OLD)
    looks.missed(["s.away"], NOON, "outbox: its end: no route")
    with site(tmp_path, now=lambda: NOON) as served:
        measures = of_sources(served)

    assert measures == {
        "livemart_source_waiting_records": {"s.log": 20},
        "livemart_source_waiting_files": {"s.files": 1},
        "livemart_source_waiting_bytes": {"s.files": 70},
        "livemart_source_waiting_seconds": {
            **{"s.files": 7_200, "s.gone": 0, "s.log": 7_200, "s.away": 0}
        },
        "livemart_source_up": {"s.files": 1, "s.gone": 0, "s.log": 1, "s.away": 0},
        "livemart_source_look_age_seconds": {"s.log": 0},
        "livemart_source_partition_waiting_records": {"s.log p0": 15, "s.log p1": 5},
    }


def test_a_project_that_serves_nothing_is_not_waited_for(tmp_path: Path) -> None:
    keep_graph(make_settings(tmp_path).warehouse, Project("shop", "", "mart", {}, {}, {}, {}))
    with site(tmp_path) as served:
        answers = [served.client.get(path) for path in ("/readyz", "/v1/models")]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert {answer.json()["code"] for answer in answers} == {"NOTHING_PUBLISHED"}
    assert all("no exposure of the project" in answer.json()["detail"] for answer in answers)


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
