"""The mini project, built once and put back for each test that goes on from a built one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.mini import Mini, sale, visit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.shared_spark import SharedSpark


def deliver_first(mini: Mini) -> None:
    mini.deliver("sales", sale("1"), sale("2", "b", "2.50"), sale("3", minutes=-70))
    mini.deliver("visits", visit("a"), visit("a"), visit("b"))


@pytest.fixture(scope="session")
def built_once(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Mini:
    mini = Mini(shared_spark.emptied(), tmp_path_factory.mktemp("mini") / "run")
    deliver_first(mini)
    # Over an empty warehouse a refresh is a build.
    assert mini.refresh().exit_code == 0
    mini.keep()
    return mini


@pytest.fixture
def mini(spark: SparkSession, built_once: Mini) -> Mini:
    """The mini project with its first snapshot."""
    return built_once.restored()


@pytest.fixture
def unbuilt(spark: SparkSession, tmp_path: Path) -> Mini:
    """The mini project with the records of its first snapshot delivered."""
    mini = Mini(spark, tmp_path)
    deliver_first(mini)
    return mini
