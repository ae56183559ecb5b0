"""Gives every path below `WAREHOUSE/_livemart`, the folder of what the engine keeps for itself.

Used by each room that reads or writes there. Nothing else in the package spells these names, except
the default of the setting `store`, whose database `serving.db` lies here, too.

    snapshots/                    the snapshot log, a Delta table: the one state (ADR-0005)
    checkpoint/                   Spark's checkpoint of the landing stream, with its epoch
    files/EPOCH/                  manifests of the files of each batch
    files/EPOCH/uncounted/        landed batches that no snapshot counts yet
    log_looks.json                what record logs held when they were last asked
    record_sizes.json             how many bytes of files a record of each source takes
    staging/                      files of a bulk load, gone when it has landed
    ingested_keys.jsonl           requests that were taken by HTTP and may be sent again
    redrives/                     records that are on their way from dead letters to landing again
    lock, holder.json             who writes the warehouse
    failures.json                 how often models have failed in a row
    last_pass.json                what the newest pass looked at, if it left nothing to do
    compiled_project              the project as it was compiled and planned last
    upkeep.json                   when old files were last removed
    run.json                      when the newest micro-batch began, if SQL says so
    project_refusal.json          why an edit of the project is not taken over
    views.json                    the SQL of the project's views, for sessions to come
    view_columns.json             what Spark made of it, for sessions in which it is the same
    conf/, connect_token          what a dbt in another terminal needs
    target/                       dbt's artifacts of a project whose folder cannot be written
    spark.log                     what the JVM prints
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The paths below `_livemart` of one warehouse."""

    warehouse: Path

    @property
    def path(self) -> Path:
        return self.warehouse / "_livemart"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def files(self) -> Path:
        return self.path / "files"

    def uncounted(self, epoch: str) -> Path:
        return self.files / epoch / "uncounted"

    @property
    def run(self) -> Path:
        return self.path / "run.json"

    @property
    def last_pass(self) -> Path:
        return self.path / "last_pass.json"

    @property
    def compiled_project(self) -> Path:
        return self.path / "compiled_project"

    @property
    def upkeep(self) -> Path:
        return self.path / "upkeep.json"

    @property
    def log_looks(self) -> Path:
        return self.path / "log_looks.json"

    @property
    def record_sizes(self) -> Path:
        return self.path / "record_sizes.json"

    @property
    def staging(self) -> Path:
        return self.path / "staging"

    @property
    def redrives(self) -> Path:
        return self.path / "redrives"

    @property
    def ingested_keys(self) -> Path:
        return self.path / "ingested_keys.jsonl"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def holder(self) -> Path:
        return self.path / "holder.json"

    @property
    def failures(self) -> Path:
        return self.path / "failures.json"

    @property
    def project_refusal(self) -> Path:
        return self.path / "project_refusal.json"

    @property
    def views(self) -> Path:
        return self.path / "views.json"

    @property
    def view_columns(self) -> Path:
        return self.path / "view_columns.json"

    @property
    def spark_conf(self) -> Path:
        return self.path / "conf"

    @property
    def connect_token(self) -> Path:
        return self.path / "connect_token"

    @property
    def target(self) -> Path:
        return self.path / "target"

    @property
    def spark_log(self) -> Path:
        return self.path / "spark.log"
