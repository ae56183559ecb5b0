"""Gives every path below `WAREHOUSE/_livemart`, the engine's own folder.

Used by each room that reads or writes there. Nothing else in the package spells these names. Only
the default of the setting `store` does: its database `serving.db` is here, too. A star marks files
that a machine keeps for itself: those of a bucket are in its own folder of state.

    snapshots/                    the snapshot log, a Delta table: the one state (ADR-0005)
    checkpoint/                   Spark's checkpoint of the landing stream, with its epoch
    files/EPOCH/                  manifests of the files of each batch
    files/EPOCH/uncounted/        landed batches that no snapshot counts yet
    log_looks.json                what record logs held when they were last asked
    record_sizes.json             how many bytes of files a record of each source takes
    ingested_keys.jsonl *         requests that were taken by HTTP and may be sent again
    redrives/, its .lock *        records that are on their way from dead letters to landing again
    failures.json                 how often models have failed in a row
    last_pass.json                what the newest pass looked at, if it left nothing to do
    last_run.json                 how the newest run goes, and what all runs have done
    upkeep.json                   when old files were last removed, tables looked into
    kept_snapshots/               until when readers keep a snapshot, a file for each
    project_graph.json            sources, models and exposures of the project that runs
    run.json                      when the newest micro-batch began, if SQL says so
    project_refusal.json          why an edit of the project is not taken over
    views.json                    the SQL of the project's views, for sessions to come
    functions.json                the statements that make the project's functions, likewise
    view_columns.json             what Spark made of it, for sessions in which it is the same
    test_tables.json              the tables that data tests made while they were compiled last
    staging/ *                    files of a bulk load, gone when it has landed; of a cluster shared
    verify/                       tables that a cluster recomputes, gone when they are compared
    lock, holder.json *           who writes the warehouse
    lease.json, lease_id *        the same among machines, for a warehouse in a bucket
    compiled_project *            the project as it was compiled and planned last
    conf/, connect_token *        what a dbt in another terminal needs
    target/ *                     dbt's artifacts of a project whose folder cannot be written
    spark.log *                   what the JVM prints
    session_key *                 signs sessions of the page; its owner alone may read it
    ended_sessions, its .lock *   sessions that were signed out before their end
"""

from __future__ import annotations

from typing import Generic, TypeVar

from livemart.storage.location import STATE_FOLDER, StoragePlace, machine_folder

_Place = TypeVar("_Place", bound=StoragePlace)


class StateFolder(Generic[_Place]):
    """The places below `_livemart` of one warehouse: paths, or locations, as the warehouse is."""

    def __init__(self, warehouse: _Place) -> None:
        self.path = warehouse / STATE_FOLDER
        self.snapshots = self.path / "snapshots"
        self.checkpoint = self.path / "checkpoint"
        self.files = self.path / "files"
        self.run = self.path / "run.json"
        self.lease = self.path / "lease.json"
        self.last_pass = self.path / "last_pass.json"
        self.last_run = self.path / "last_run.json"
        self.upkeep = self.path / "upkeep.json"
        self.kept_snapshots = self.path / "kept_snapshots"
        self.log_looks = self.path / "log_looks.json"
        self.record_sizes = self.path / "record_sizes.json"
        self.redrives = self.path / "redrives"
        self.failures = self.path / "failures.json"
        self.project_refusal = self.path / "project_refusal.json"
        self.project_graph = self.path / "project_graph.json"
        self.views = self.path / "views.json"
        self.functions = self.path / "functions.json"
        self.view_columns = self.path / "view_columns.json"
        self.test_tables = self.path / "test_tables.json"
        self.staging = self.path / "staging"
        self.verify = self.path / "verify"

    def uncounted(self, epoch: str) -> _Place:
        return self.files / epoch / "uncounted"


class LocalFolder:
    """The paths of the files that one machine keeps of a warehouse for itself."""

    def __init__(self, warehouse: StoragePlace) -> None:
        self.path = machine_folder(warehouse)
        self.compiled_project = self.path / "compiled_project"
        self.staging = self.path / "staging"
        self.ingested_keys = self.path / "ingested_keys.jsonl"
        self.lease_id = self.path / "lease_id"
        self.redrive_lock = self.path / "redrives" / ".lock"
        self.lock = self.path / "lock"
        self.holder = self.path / "holder.json"
        self.spark_conf = self.path / "conf"
        self.connect_token = self.path / "connect_token"
        self.target = self.path / "target"
        self.spark_log = self.path / "spark.log"
        self.session_key = self.path / "session_key"
        self.ended_sessions = self.path / "ended_sessions"
