"""A foreign project of every SQL shape, refreshed along random histories, equals its own SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.disagreeing_values import ZONES
from tests.equivalence.recomputed import refresh_and_compare
from tests.equivalence.shapes_history import history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_every_shape_refreshed_equals_its_own_sql(spark: SparkSession, tmp_path: Path) -> None:
    # An hour has just come twice in New York.
    batches = history(7, 3, started_at=datetime(2026, 11, 1, 7, tzinfo=UTC))
    refresh_and_compare(spark, "shapes", tmp_path, batches, zone="America/New_York")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_every_shape_refreshed_along_more_histories_equals_its_own_sql(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    refresh_and_compare(
        spark,
        "shapes",
        tmp_path,
        history(seed, 8),
        lane=("small", "large")[seed % 2],
        zone=ZONES[seed % len(ZONES)],
    )
