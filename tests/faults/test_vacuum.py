"""VACUUM and OPTIMIZE beside a running stream: what snapshots name stays readable. A minute."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from livemart.inspect.published_tables import published_tables
from tests.faults.kill_driver import deliver, records
from tests.integration.mini import Mini
from tests.waits import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.extended, pytest.mark.processes]
STEPS = 5
TABLES = ("bronze.sales", "bronze.visits", "mini.shop_totals", "mini.visit_counts")
_EIGHT_DAYS_S = 8 * 86_400

Pinned = dict[tuple[str, int], list[str]]


def pinned(mini: Mini) -> Pinned:
    """Return the rows of each table of the newest snapshot, as others read them."""
    return {
        (it.path, it.version): rows_at(it.path, it.version)
        for it in published_tables(mini.root / "warehouse")
    }


def rows_at(path: Any, version: int) -> list[str]:
    table = DeltaTable(str(path), version=version).to_pyarrow_table()
    return sorted(map(str, table.to_pylist()))


@pytest.mark.timeout(1800)
def test_what_a_snapshot_names_is_readable_though_tables_are_vacuumed_beside_the_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(7)
    mini = Mini(spark, tmp_path / "mini")
    deliver(mini.landing, 0)
    mini.build()
    # Old files without a reference are removed.
    orphan = mini.root / "warehouse" / "mini" / "shop_totals" / "part-00000-old.snappy.parquet"
    orphan.write_bytes(b"old")
    before = orphan.stat().st_mtime - _EIGHT_DAYS_S
    os.utime(orphan, (before, before))
    kept: Pinned = {}

    def has_landed(step: int) -> bool:
        expected = sum(len(records(it)["sales"]) for it in range(step + 1))
        rows = mini.log.rows(1_000)
        return (
            sum(row.landed["bronze.sales"].produced for row in rows) == expected
            and rows[0].status == "published"
        )

    with mini.streaming():
        for step in range(1, STEPS + 1):
            deliver(mini.landing, step)
            for table in chance.sample(TABLES, 2):
                if chance.random() < 0.5:
                    spark.sql(f"optimize {table}")
                spark.sql(f"vacuum {table}")
            wait_until(lambda step=step: has_landed(step))  # type: ignore[misc]
            kept |= pinned(mini)
        for table in TABLES:
            spark.sql(f"vacuum {table}")

    assert not orphan.exists()
    assert {place: rows_at(*place) for place in kept} == kept
    assert mini.differing() == []
    assert len({version for path, version in kept if str(path).endswith("shop_totals")}) == STEPS


def test_a_refresh_goes_on_though_nothing_is_left_of_earlier_versions(
    spark: SparkSession, tmp_path: Path
) -> None:
    mini = Mini(spark, tmp_path / "mini")
    deliver(mini.landing, 0)
    mini.build()
    deliver(mini.landing, 1)
    mini.refresh()
    for table in published_tables(mini.root / "warehouse"):
        # Shorter than the table's own retention, which Delta refuses unless one insists.
        DeltaTable(table.path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    deliver(mini.landing, 2)
    mini.restart()

    mini.refresh()

    assert mini.differing() == []
