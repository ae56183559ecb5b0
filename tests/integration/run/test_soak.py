"""A hundred micro-batches leave no more behind than fifty: nothing grows with each snapshot.

Spark's own checkpoint is left out: it keeps a hundred micro-batches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
import yaml

from livemart.delta.properties import TABLE_PROPERTIES
from livemart.run.upkeep import keep_up
from livemart.state.places import StateFolder
from livemart.state.snapshots import SnapshotLog
from tests.aged_tables import parquet_files
from tests.integration.mini import Mini, sale

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCHES = 100
_UPKEEP = 5
_PANE = timedelta(minutes=5)
# Nothing is kept for time, and little for its number: a hundred batches are as good as a year.
_AT_ONCE = {
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
    "delta.logRetentionDuration": "interval 0 seconds",
}

_SERVED = """
version: 2
exposures:
  - name: page
    type: dashboard
    owner: {email: shop@livemart.invalid}
    depends_on: [ref('shop_totals'), ref('shop_ranks')]
"""


@pytest.fixture
def nothing_waits() -> Iterator[None]:
    with (
        mock.patch.dict(TABLE_PROPERTIES, _AT_ONCE),
        mock.patch.dict("livemart.state.snapshots._PROPERTIES", _AT_ONCE),
        mock.patch("livemart.state.snapshots._COMPACT_EVERY", 10),
        mock.patch("livemart.run.upkeep._EVERY", _PANE * _UPKEEP),
        # Snapshots and files have times of the machine's clock, far from the stream's: all are old.
        mock.patch("livemart.run.pipeline.keep_up", _keep_up),
        mock.patch("livemart.run.upkeep._QUIET", -timedelta(days=36_500)),
        mock.patch("livemart.publish.transaction.KEPT_SNAPSHOTS", 10),
        mock.patch("livemart.land.sources.manifest._KEPT", 10),
    ):
        yield


def _keep_up(
    warehouse: Path, now: datetime, step: Callable[[str], None], retention: timedelta
) -> None:
    keep_up(warehouse, now, step, -timedelta(days=36_500))


@pytest.mark.extended
@pytest.mark.usefixtures("nothing_waits")
def test_a_hundred_batches_leave_no_more_than_fifty(spark: SparkSession, tmp_path: Path) -> None:
    store = tmp_path / "serving.db"
    flags = {"store": f"sqlite:///{store}", "change_retention": "1s"}
    run = Mini(spark, tmp_path, flags=flags)
    run.edit("models/_exposures.yml", _SERVED)
    _set_properties(run)
    looks: list[Mapping[str, int]] = []
    for number in range(1, _BATCHES + 1):
        # The same sales again, corrected: the data do not grow.
        sales = [
            sale(f"s{it}", "ab"[it % 2], f"{number}.00", minutes=-it, updated=number)
            for it in range(20)
        ]
        run.deliver("sales", *sales)
        _ = run.refresh() if number > 1 else run.build()
        run.now += _PANE
        looks.append(dict(_counts(run.root / "warehouse", store)))

    # Between two upkeeps, and two compactions of the snapshot log, there is more and less.
    half, whole = (_most(looks[until - 2 * _UPKEEP : until]) for until in (_BATCHES // 2, _BATCHES))
    grown = {name: (half[name], most) for name, most in whole.items() if most > 1.15 * half[name]}
    assert grown == {}
    assert run.differing() == []


def _set_properties(run: Mini) -> None:
    path = run.project / "dbt_project.yml"
    project = yaml.safe_load(path.read_text())
    for kind in ("models", "seeds"):
        project[kind]["mini"]["+tblproperties"] = _AT_ONCE
    run.edit("dbt_project.yml", yaml.safe_dump(project))


def _most(looks: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: max(look[name] for look in looks) for name in looks[-1]}


def _counts(warehouse: Path, store: Path) -> Iterator[tuple[str, int]]:
    for log in sorted(warehouse.glob("*/*/_delta_log")):
        name = f"{log.parent.parent.name}.{log.parent.name}"
        yield f"{name}: data files", len(parquet_files(log.parent))
        yield f"{name}: files of the log", sum(path.is_file() for path in log.rglob("*"))
    state = StateFolder(warehouse)
    yield "files of state", sum(path.is_file() for path in state.path.iterdir())
    yield "manifests", sum(path.is_file() for path in state.files.rglob("*"))
    yield "rows of the snapshot log", len(SnapshotLog(warehouse).rows(10 * _BATCHES))
    with closing(sqlite3.connect(store)) as connection:
        for table in ("livemart_changes", "livemart_published", "livemart_retired"):
            ((count,),) = connection.execute(f"select count(*) from {table}")
            yield f"store: rows of {table}", count
        ((pages,),) = connection.execute("pragma page_count")
        yield "store: pages", pages
