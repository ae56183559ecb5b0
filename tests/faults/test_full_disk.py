"""A disk that is full: the command says so and stops, and once there is space all is whole.

Each round leaves another room, by a seed, so the disk is full at other moments; two minutes.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.cli.exits import as_full_disk
from tests.faults.kill_driver import deliver, records
from tests.faults.small_disk import small_disk
from tests.faults.test_kills import oracle
from tests.integration.mini import Mini

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.extended, pytest.mark.processes]
SIZE = 64 << 20
PAGE = 4096
ROUNDS = 8


def published(mini: Mini) -> dict[str, Any]:
    """Return what readers see."""
    names = ("shop_totals", "visit_counts", "shop_ranks")
    return {name: mini.rows(f"mini.{name}") for name in names}


@pytest.mark.timeout(1800)
def test_a_full_disk_stops_a_refresh_and_leaves_no_trace(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(7)
    # With no room at all it is full at once; with most of it, in the midst of the models.
    rooms = [0, *(chance.randrange(1, 160) * PAGE for _ in range(ROUNDS - 1))]
    mini = Mini(spark, tmp_path / "mini")
    (mini.root / "warehouse").mkdir()
    refused = []
    with small_disk(mini.root / "warehouse", SIZE) as disk:
        deliver(mini.landing, 0)
        mini.build()
        for step, room in enumerate(rooms, 1):
            before = published(mini)
            deliver(mini.landing, step)
            disk.fill(room)
            try:
                mini.refresh()
            except Exception as error:
                told = as_full_disk(error, mini.root / "warehouse")
                assert told is not None, room
                refused.append(str(told))
                assert published(mini) == before, room
            disk.empty()
            if chance.random() < 0.5:
                mini.restart()
            mini.refresh()
            totals, visits = oracle(step)
            rows = published(mini)
            assert {
                row["shop_id"]: (row["sale_count"], row["sales_amount"])
                for row in rows["shop_totals"]
            } == totals, room
            assert {row["shop_id"]: row["visit_count"] for row in rows["visit_counts"]} == visits
        log = mini.log.rows(1_000)
        produced = sum(row.landed["bronze.sales"].produced for row in log)
        assert mini.differing() == []

    assert len(refused) > 1
    assert all(it.startswith("DISK_FULL") and "free space there" in it for it in refused)
    assert produced == sum(len(records(step)["sales"]) for step in range(len(rooms) + 1))
