"""The reference mart with the first batch of a history in it, built once for many tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.equivalence.mart_history import MartBatch, mart_history
from tests.project_run import ROOT, ProjectRun
from tests.shared_spark import SharedSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A seed whose clock moves by a pane, and then by an hour: rows leave windows.
_SEED, _TRIALS = 15, 20


@dataclass
class BuiltMart:
    """A mart of which `batches` hold what was delivered before its build and what comes after."""

    run: ProjectRun
    batches: list[MartBatch]


@pytest.fixture(scope="session")
def _kept(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> BuiltMart:
    batches = list(mart_history(_SEED, _TRIALS, batches=4))
    run = ProjectRun(shared_spark.emptied(), tmp_path_factory.mktemp("mart") / "run", ROOT)
    batches[0].arrive(run)
    run.build()
    run.keep()
    return BuiltMart(run, batches)


@pytest.fixture
def built_mart(spark: SparkSession, _kept: BuiltMart) -> BuiltMart:
    return BuiltMart(_kept.run.restored(), _kept.batches)
