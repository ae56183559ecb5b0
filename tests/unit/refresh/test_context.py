"""Models of one session share what commits for it by Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.project.session_spec import PLAIN, SessionSpec
from livemart.refresh import context as contexts
from livemart.refresh.context import BatchContext

PARIS = SessionSpec(settings=(("spark.sql.session.timeZone", "Europe/Paris"),))


def test_models_of_one_session_share_its_large_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "session_of", lambda spark, spec: (spark, spec))
    monkeypatch.setattr(contexts, "LargeLane", lambda spark, _: SimpleNamespace(spark=spark))
    context = BatchContext(cast(Any, "spark"), Warehouse(tmp_path), "e", 3, "auto", 10, 1)
    lanes = [context.lane_of(PARIS) for _ in range(2)]

    assert lanes[0] is lanes[1]
    assert cast(Any, lanes[0]).spark == ("spark", PARIS)
    assert cast(Any, context.lane_of(PLAIN)).spark == "spark"
