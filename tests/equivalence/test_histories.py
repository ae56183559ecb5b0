"""Dimensions, newest rows and running values whose order may tie: each answer is a legal one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.equivalence.histories_history import KEYS, history
from tests.equivalence.histories_oracle import MODELS, illegal, typed
from tests.equivalence.recomputed import refreshed
from tests.equivalence.shapes_history import Batch, newest_rows
from tests.project_run import PROJECTS, ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEED = 6
# The author asked for it.
FULL = {"kept_whole": "POLICY_FULL"}
# The picked rows are a stage of these, which the first refresh computes: a build decides otherwise.
IN_STEPS = frozenset({"members_by_city", "changes_by_tier_before"})


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("has_ties", [True, False], ids=["ties", "no ties"])
def test_histories_are_legal_after_every_batch(
    spark: SparkSession, tmp_path: Path, lane: str, has_ties: bool
) -> None:
    batches = history(_SEED, 9, has_ties=has_ties)
    refresh_and_judge(spark, tmp_path, batches, lane=lane, has_ties=has_ties)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_more_histories_are_legal_after_every_batch(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    lane = ("small", "large")[seed % 2]
    refresh_and_judge(spark, tmp_path, history(seed, 10, has_ties=True), lane=lane)


def refresh_and_judge(
    spark: SparkSession,
    folder: Path,
    batches: Iterable[Batch],
    *,
    lane: str = "auto",
    has_ties: bool = True,
) -> None:
    """Build the project from the first batch, refresh it by each of the others.

    After each, every model holds rows that some order of what ties gives, and `verify` says equal;
    where nothing ties, without a word of it.
    """
    run = ProjectRun(spark, folder / "run", PROJECTS / "histories", flags={"lane": lane})
    delivered: list[Batch] = []
    for number, batch in refreshed(run, batches):
        delivered.append(batch)
        assert _faults(run, delivered) == [], f"batch {number}"
        if number:
            full = {
                name: reasons(run.newest)[name]
                for name, strategy in strategies(run.newest).items()
                if strategy == "full"
            }
            if number == 1:
                full = {name: why for name, why in full.items() if name not in IN_STEPS}
            assert full.keys() <= FULL.keys(), full
            assert all((reason or "").startswith(FULL[name]) for name, reason in full.items())
        _verify(run, has_ties=has_ties)


def _verify(run: ProjectRun, *, has_ties: bool) -> None:
    for comparison in run.verify():
        assert comparison.is_equal, comparison
        # Either of two cities with the same tier, or any city, may be shown.
        if not has_ties and comparison.model not in ("newest_of_each_city", "any_city"):
            assert not comparison.tied, comparison


def _faults(run: ProjectRun, delivered: list[Batch]) -> list[str]:
    sources = typed(newest_rows(delivered, KEYS))
    stored = {name: run.rows(f"histories.{name}") for name in MODELS}
    faults = [fault for name, rows in stored.items() for fault in illegal(name, rows, sources)]
    as_of = run.rows("histories.charges_as_of")
    expected = [
        {
            "charge_id": charge["charge_id"],
            "member_id": charge["member_id"],
            "amount": charge["amount"],
            **{name: row[name] for name in ("tier", "city", "price")},
        }
        for charge in sources["charges"]
        for row in stored["member_history"]
        if row["member_id"] == charge["member_id"]
        and None not in (charge["charged_at"], row["valid_from"], charge["member_id"])
        and row["valid_from"] <= charge["charged_at"] <= row["valid_to"]
    ]
    if sorted(map(str, as_of)) != sorted(map(str, expected)):
        faults.append(f"charges_as_of: {as_of} instead of {expected}")
    return faults
