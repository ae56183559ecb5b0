"""`sources.json` is what dbt reads back, and ages where nothing lands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from dbt.artifacts.schemas.freshness import FreshnessExecutionResultArtifact

from livemart.project.graph import Project, SourceTable
from livemart.run.artifacts import source_freshness
from livemart.run.artifacts.source_freshness import (
    freshness_status,
    renew_freshness,
    write_freshness,
)
from livemart.state.snapshots import Snapshot
from tests.models import stream_spec

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FRESHNESS = {
    "warn_after": {"count": 1, "period": "hour"},
    "error_after": {"count": 2, "period": "day"},
    "filter": None,
}
ORDERS = SourceTable(
    *("source.m.raw.orders", "raw", "orders", "raw", "orders", (), None, None),
    stream_spec(path="orders/*.jsonl"),
    "models/_s.yml",
    freshness=FRESHNESS,
)
PLAIN = SourceTable(
    *("source.m.raw.plain", "raw", "plain", "raw", "plain", (), None, None),
    stream_spec(path="plain/*.jsonl"),
    "models/_s.yml",
)
PROJECT = Project("m", ".", "m", {it.unique_id: it for it in (ORDERS, PLAIN)}, {}, {}, {})
SNAPSHOT = Snapshot(
    *(2, "e", 7, "refresh", None, {"raw.orders": 3, "raw.plain": 1}, {}, {}, "published"),
    *(NOON, NOON + timedelta(seconds=2)),
)


@pytest.fixture(autouse=True)
def _landed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_freshness, "_landed_at", lambda *_: NOON - timedelta(hours=3))


def _write(folder: Path, project: Project = PROJECT) -> None:
    write_freshness(folder, project, cast(Any, None), SNAPSHOT)


def _read(folder: Path) -> list[Any]:
    path = str(folder / "sources.json")
    return list(FreshnessExecutionResultArtifact.read_and_check_versions(path).results)


def test_sources_are_as_fresh_as_their_newest_landing(tmp_path: Path) -> None:
    _write(tmp_path)

    [result] = _read(tmp_path)
    assert (result.unique_id, str(result.status)) == (ORDERS.unique_id, "warn")
    assert result.max_loaded_at_time_ago_in_s == 3 * 3600 + 2


def test_what_does_not_land_ages(tmp_path: Path) -> None:
    _write(tmp_path)

    renew_freshness(tmp_path, NOON + timedelta(days=2))

    [result] = _read(tmp_path)
    assert (result.unique_id, str(result.status)) == (ORDERS.unique_id, "error")
    assert result.max_loaded_at_time_ago_in_s == 51 * 3600


def test_a_project_that_asks_for_none_has_none_and_is_not_given_one(tmp_path: Path) -> None:
    renew_freshness(tmp_path, NOON)
    assert list(tmp_path.iterdir()) == []
    _write(tmp_path)

    _write(tmp_path, Project("m", ".", "m", {PLAIN.unique_id: PLAIN}, {}, {}, {}))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("hours", "expected"), [(1, "pass"), (2, "warn"), (48, "warn"), (49, "error")]
)
def test_the_worst_criterion_that_holds_counts(hours: int, expected: str) -> None:
    assert freshness_status(FRESHNESS, timedelta(hours=hours)) == expected
