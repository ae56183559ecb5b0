"""A wall clock that jumps back and forward: nothing is lost or counted twice. A minute."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.kill_driver import deliver, now, records
from tests.faults.test_kills import oracle
from tests.integration.mini import Mini

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.extended, pytest.mark.processes]
STEPS = 8
JUMPS = (
    *(timedelta(days=-400), timedelta(hours=-3), timedelta(seconds=-1)),
    *(timedelta(), timedelta(hours=2), timedelta(days=30)),
)


@pytest.mark.timeout(1800)
def test_a_clock_that_jumps_loses_nothing_and_no_window_slides_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(7)
    jumps = [*chance.sample(JUMPS, len(JUMPS)), *chance.choices(JUMPS, k=STEPS - len(JUMPS))]
    mini = Mini(spark, tmp_path / "mini")
    deliver(mini.landing, 0)
    mini.build()
    for step, jump in enumerate(jumps, 1):
        mini.now = now(step) + jump
        deliver(mini.landing, step)
        if chance.random() < 0.5:
            mini.restart()
        mini.refresh()
        assert mini.differing() == [], jump
    log = list(reversed(mini.log.rows(1_000)))

    instants = [row.as_of for row in log if row.as_of is not None]
    assert instants == sorted(instants)
    assert max(instants) >= now(1) + max(jumps)
    assert [row.snapshot_id for row in log] == sorted({row.snapshot_id for row in log})
    produced = sum(row.landed["bronze.sales"].produced for row in log)
    assert produced == sum(len(records(step)["sales"]) for step in range(STEPS + 1))
    totals, _ = oracle(STEPS)
    assert mini.totals() == {shop: (count, str(amount)) for shop, (count, amount) in totals.items()}
