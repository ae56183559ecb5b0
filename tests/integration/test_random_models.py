"""Random models of odd SQL hold the rows of their text after every batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from tests.disagreeing_values import ZONES
from tests.equivalence.recomputed import differing
from tests.integration.mini import Mini, visit
from tests.integration.random_models import DRAWN, DRAWN_MODEL, NAMES, SALES, random_model
from tests.integration.test_readings import batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODELS = 12
_STORED = {
    SALES: "(select '' as sale_id, '' as shop_id, cast(1 as decimal(10, 2)) as amount,"
    " timestamp '2026-01-01' as sold_at)",
    NAMES: "(select '' as shop_id, '' as shop_name)",
}
_STORED[DRAWN] = f"({DRAWN_MODEL.replace(SALES, _STORED[SALES])})"


def is_known_to(spark: SparkSession, text: str) -> bool:
    """Return True if Spark can analyse a model."""
    for name, query in _STORED.items():
        text = text.replace(name, query)
    try:
        spark.sql(text)
    except AnalysisException:
        return False
    return True


def refresh_and_verify(
    spark: SparkSession,
    folder: Path,
    seeds: range,
    *,
    zone: str = "UTC",
    lane: str = "auto",
) -> None:
    """Refresh one project of random models; those that Spark refuses are left out."""
    folder.mkdir(exist_ok=True)
    mini = Mini(spark, folder, flags={"lane": lane})
    mini.set_zone(zone)
    models = {seed: random_model(seed) for seed in seeds}
    known = {seed: text for seed, text in models.items() if is_known_to(spark, text)}
    assert len(known) > len(models) // 2
    mini.edit("models/drawn.sql", DRAWN_MODEL)
    for seed, text in known.items():
        mini.edit(f"models/random_{seed}.sql", text)
    first, *later = batches()
    mini.deliver("sales", *first)
    mini.deliver("visits", visit("a"))
    mini.build()
    for number, records in enumerate(later):
        mini.deliver("sales", *records)
        mini.refresh()

        reasons = {name: state.reason for name, state in mini.newest.models.items()}
        assert "STRATEGY_FAILED" not in reasons.values(), f"seeds {seeds}: {reasons}"
        assert list(differing(mini)) == [], f"seeds {seeds}, batch {number}"


@pytest.mark.extended
@pytest.mark.parametrize(("start", "zone", "lane"), [(0, 1, "large"), (20, 2, "small")])
def test_random_models_hold_the_rows_of_their_text(
    spark: SparkSession, tmp_path: Path, start: int, zone: int, lane: str
) -> None:
    seeds = range(start, start + _MODELS)
    refresh_and_verify(spark, tmp_path, seeds, zone=ZONES[zone], lane=lane)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_many_random_models_hold_the_rows_of_their_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    for start in range(100, 1_300, _MODELS):
        number = start // _MODELS
        refresh_and_verify(
            spark,
            tmp_path / str(start),
            range(start, start + _MODELS),
            zone=ZONES[number % len(ZONES)],
            lane=("small", "large")[number % 2],
        )
