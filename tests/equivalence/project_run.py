"""A dbt project with a warehouse and a landing folder of its own, driven batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.delta.warehouse import Warehouse
from livemart.inspect.verify import Comparison, verify_models
from livemart.run.pipeline import Pipeline, RunOutcome
from livemart.run.runtime import Runtime, load_runtime
from livemart.settings import load_settings
from livemart.spark.jars import delta_jars
from livemart.spark.session import create_session
from livemart.state.snapshots import Snapshot, SnapshotLog
from tests.integration.mini import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Records = Mapping[str, Sequence[Mapping[str, Any]]]


class ProjectRun:
    """One project below `folder`; the wall clock is what each call says."""

    def __init__(self, project: Path, folder: Path, *, lane: str = "auto") -> None:
        self.folder = folder
        self.landing = folder / "landing"
        self.landing.mkdir(parents=True)
        (folder / "warehouse").mkdir()
        self._settings = load_settings(
            {
                "project_dir": str(project),
                "warehouse": str(folder / "warehouse"),
                "landing": str(self.landing),
                "lane": lane,
            },
            environ={},
        )
        self.spark = fresh_session(folder)
        self._watcher = Silent()
        self._runtime: Runtime | None = None
        self._files = 0

    @property
    def runtime(self) -> Runtime:
        if self._runtime is None:
            self._runtime = load_runtime(self._settings, self.spark, self._watcher)
        return self._runtime

    def forget(self) -> None:
        """Forget everything that a process keeps warm, as a restart does."""
        self._runtime = None

    def deliver(self, records: Records) -> None:
        """Put one file of JSON lines per source below the landing folder, by rename."""
        self._files += 1
        for source, rows in records.items():
            if rows:
                folder = self.landing / source
                folder.mkdir(exist_ok=True)
                draft = folder / f".{self._files}"
                draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
                draft.rename(folder / f"{self._files:04}.jsonl")

    def build(self, now: datetime) -> RunOutcome:
        return Pipeline(self.runtime, self._watcher, now=lambda: now).build()

    def refresh(self, now: datetime) -> RunOutcome:
        return Pipeline(self.runtime, self._watcher, now=lambda: now).refresh()

    def replay(self, now: datetime) -> RunOutcome:
        """Run the last micro-batch again, as after a crash before the checkpoint knew of it."""
        commits = self.runtime.checkpoint / "commits"
        newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(newest)).unlink()
        (commits / f".{newest}.crc").unlink(missing_ok=True)
        return self.refresh(now)

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.folder / "warehouse")

    @property
    def newest(self) -> Snapshot:
        newest = SnapshotLog(self.folder / "warehouse").newest()
        assert newest is not None
        return newest

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows of a table as they are now."""
        rows: list[dict[str, Any]] = self.warehouse.read(relation).to_pylist()
        return rows

    def differing(self) -> list[str]:
        """Return the models that differ from a recomputation out of the landed tables."""
        return [str(found) for found in self.compared() if not found.is_equal]

    def compared(self) -> Iterator[Comparison]:
        """Yield each model's comparison with a recomputation, in dependency order."""
        runtime = self.runtime
        yield from verify_models(self.spark, runtime.warehouse, runtime.project, self.newest)


def fresh_session(folder: Path) -> SparkSession:
    """Return the process's session with an empty catalog and no temporary view."""
    spark = create_session(folder / "catalog", delta_jars(), memory="2g")
    # Delta remembers every table that it has seen, megabytes each; those of other tests are gone.
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    for (name,) in spark.sql("show databases").collect():
        if name != "default":
            spark.sql(f"drop database `{name}` cascade")
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    return spark
