"""How the newest run goes is known from the warehouse, and where that is not, from the store."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from livemart.project.graph import Project
from livemart.serve.live.run_watch import RunWatch
from livemart.state.last_run import LastRun, RunFailure, keep_last_run, run_to_json
from livemart.state.project_graph import keep_graph
from livemart.store.connections import open_engine
from livemart.store.reader import StoreReader
from livemart.store.run_copy import write_run_copy

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILED = LastRun(
    *("refresh", 4711, NOON, NOON),
    ended_at=NOON,
    ending="failed",
    failure=RunFailure(NOON, "MODEL_FAILED", ("model.shop.totals",), "no"),
)
DONE = replace(FAILED, command="build", ending="ok", failure=None)


def test_a_server_without_the_warehouse_reads_the_copy(tmp_path: Path) -> None:
    url, times = f"sqlite:///{tmp_path / 'store.db'}", iter(range(100))
    engine = open_engine(url, writes=True)
    with closing(StoreReader.open(url)) as reader:
        watch = RunWatch(tmp_path / "warehouse", reader, 1, lambda: float(next(times)))
        assert watch.newest() is None

        write_run_copy(engine, run_to_json(FAILED))
        assert watch.newest() == FAILED

        # The warehouse holds the note itself, complete at any time.
        keep_last_run(tmp_path / "warehouse", DONE)
        assert watch.newest() == DONE
    engine.dispose()


def test_many_who_ask_cost_one_look(tmp_path: Path) -> None:
    at = [0.0]
    with closing(StoreReader.open(f"sqlite:///{tmp_path / 'store.db'}")) as reader:
        watch = RunWatch(tmp_path, reader, 1, lambda: at[0])
        assert watch.newest() is None
        assert not watch.serves_nothing()
        keep_last_run(tmp_path, DONE)
        keep_graph(tmp_path, Project("shop", "", "mart", {}, {}, {}, {}))
        assert watch.newest() is None
        assert not watch.serves_nothing()

        at[0] = 1.0
        assert watch.newest() == DONE
        assert watch.serves_nothing()
