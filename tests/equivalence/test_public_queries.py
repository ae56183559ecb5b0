"""TPC-H and Nexmark as models: refreshed along random histories, they equal their own SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.equivalence import nexmark_history, tpch_history
from tests.equivalence.recomputed import refresh_and_compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SEEDS = [
    (1, "auto"),
    *(pytest.param(*it, marks=pytest.mark.nightly) for it in ((2, "small"), (3, "large"))),
]


@pytest.mark.extended
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "lane"), SEEDS)
def test_tpch_refreshed_equals_its_own_sql(
    spark: SparkSession, tmp_path: Path, seed: int, lane: str
) -> None:
    refresh_and_compare(spark, "tpch", tmp_path, tpch_history.history(seed, 4), lane=lane)


@pytest.mark.extended
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "lane"), SEEDS)
def test_nexmark_refreshed_equals_its_own_sql(
    spark: SparkSession, tmp_path: Path, seed: int, lane: str
) -> None:
    # Half an hour has just come twice on Lord Howe.
    batches = nexmark_history.history(seed, 4, started_at=datetime(2026, 4, 4, 15, 30, tzinfo=UTC))
    zone = "Australia/Lord_Howe"
    refresh_and_compare(spark, "nexmark", tmp_path, batches, lane=lane, zone=zone)
