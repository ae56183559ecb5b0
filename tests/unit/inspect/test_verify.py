"""A model that cannot be compared is reported, and a selection without any is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.inspect import verify
from livemart.project.graph import Project
from livemart.settings import Settings
from livemart.state.snapshots import Snapshot
from tests.models import make_model

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(1, "e", 0, "build", None, {}, {}, {}, "published", NOON, NOON)


def _project(materialized: str) -> Project:
    model = make_model("model.shop.made", materialized=materialized)
    return Project("shop", ".", "shop", {}, {model.unique_id: model}, {}, {})


def test_a_selection_without_rows_of_its_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = frozenset({"model.shop.made"})
    loaded = _project("view"), chosen
    stopped: list[bool] = []
    spark = SimpleNamespace(stop=lambda: stopped.append(True))
    started: list[bool] = []

    def start(settings: Settings, *, is_short: bool) -> Any:
        started.append(is_short)
        return spark

    monkeypatch.setattr("livemart.spark.session.open_session", start)
    monkeypatch.setattr(verify, "published_snapshot", lambda warehouse: SNAPSHOT)
    monkeypatch.setattr(verify, "load_as_of", lambda *_: loaded)
    settings = Settings(warehouse=tmp_path, select=("made",))

    with pytest.raises(ConfigError, match="SELECTION_EMPTY: --select made"):
        list(verify.verify_snapshot(settings, lambda event: None))

    # All tables together have few rows: the JVM need not compile well.
    assert (started, stopped) == ([True], [True])


def test_verify_tells_models_of_two_packages_apart(tmp_path: Path) -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    ids = ("model.shop.totals", "model.crm.totals", "model.shop.days")
    models = {unique_id: make_model(unique_id) for unique_id in ids}
    project = Project("shop", ".", "shop", {}, models, {}, {})

    found = verify.verify_models(spark, Warehouse(tmp_path), project, SNAPSHOT)

    assert [comparison.model for comparison in found] == ["shop.totals", "crm.totals", "days"]


def test_a_model_of_a_custom_materialization_is_told_as_not_compared(tmp_path: Path) -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    warehouse = Warehouse(tmp_path)

    (found,) = verify.verify_models(spark, warehouse, _project("other"), SNAPSHOT)

    assert verify.exit_code([found]) == 3
    assert found.to_json()["is_equal"] is None
    assert "whose rows dbt alone knows" in found.note
    assert list(verify.verify_models(spark, warehouse, _project("view"), SNAPSHOT)) == []
