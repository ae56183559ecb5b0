"""`make bench-soak`: what the mart leaves behind batch after batch, in one stream that publishes.

After a first build the demo's kind of orders arrives, with late and corrected orders among them: a
batch every five minutes by the stream's clock. Every snapshot is copied into a serving store
(SQLite). After the batches that `--at` names everything that could grow is counted. JSON lines on
standard output, progress on standard error.

A week of retention would show its end after 2,000 batches. So it is shorter here, by the same
places in the code: `--retention`, in seconds of the machine's clock. Upkeep comes with each
`--upkeep` batches instead of once a day, and `--snapshots` is the number of kept snapshots.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from bench.history import History
from bench.live import STEP, Batch, make_batches
from bench.mart import Mart, open_mart
from bench.refresh import working_folder
from livemart.delta.properties import TABLE_PROPERTIES
from livemart.delta.warehouse import Warehouse
from livemart.observe.logs import configure_logs
from livemart.run.events import BatchOutcome
from livemart.run.upkeep import keep_up
from livemart.state.places import StateFolder

_SEED = 20260301


@dataclass(frozen=True, slots=True)
class Sizes:
    """The files below a folder."""

    files: int
    bytes: int

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Sizes:
        """Return how many of these paths are files, and their bytes together."""
        sizes = [path.lstat().st_size for path in paths if path.is_file()]
        return cls(len(sizes), sum(sizes))


def _keep_up(
    warehouse: Path, now: datetime, step: Callable[[str], None], retention: timedelta
) -> None:
    keep_up(warehouse, now, step, -timedelta(days=36_500))


@contextmanager
def _shortened(retention_s: int, upkeep_batches: int, snapshots: int) -> Iterator[None]:
    """Let what is kept for days, or for many snapshots, end within a run."""
    retention = f"interval {retention_s} seconds"
    properties = {
        "delta.deletedFileRetentionDuration": retention,
        "delta.logRetentionDuration": retention,
    }
    with (
        mock.patch.dict(TABLE_PROPERTIES, properties),
        mock.patch.dict("livemart.state.snapshots._PROPERTIES", properties),
        mock.patch("livemart.run.upkeep._EVERY", STEP * upkeep_batches),
        # Snapshots and files have times of the machine's clock, far from the stream's: all are old.
        mock.patch("livemart.run.pipeline.keep_up", _keep_up),
        mock.patch("livemart.run.upkeep._QUIET", -timedelta(days=36_500)),
        mock.patch("livemart.publish.transaction.KEPT_SNAPSHOTS", snapshots),
        mock.patch("livemart.land.sources.manifest._KEPT", snapshots),
    ):
        yield


@dataclass
class Soak:
    """A mart whose stream is looked at after some of its batches."""

    mart: Mart
    at: Sequence[int]
    looks: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ended = self.mart.batch_ended

        def batch_ended(outcome: BatchOutcome) -> None:
            # Before the next batch is delivered.
            number = len(self.mart.rounds) + 1
            is_refresh = outcome.snapshot is not None and outcome.snapshot.kind == "refresh"
            if is_refresh and number in self.at:
                self.looks[number] = dict(self.figures())
            ended(outcome)

        self.mart.batch_ended = batch_ended  # type: ignore[method-assign]

    def figures(self) -> Iterator[tuple[str, float]]:
        """Yield name and value of everything that could grow."""
        root = self.mart.runtime.warehouse.root
        state = StateFolder(root)
        yield from _of_tables(root)
        store = state.path / "serving.db"
        for name, folder in (
            ("snapshot_log", state.snapshots),
            ("checkpoint", state.checkpoint),
            ("dbt_target", self.mart.runtime.dbt.target_dir),
        ):
            sizes = Sizes.of(folder.rglob("*"))
            yield f"{name}_files", sizes.files
            yield f"{name}_bytes", sizes.bytes
        others = [
            path
            for path in state.path.rglob("*")
            if not any(
                path.is_relative_to(folder) for folder in (state.snapshots, state.checkpoint)
            )
            and not path.name.startswith(store.name)
        ]
        yield "livemart_files", Sizes.of(others).files
        yield "livemart_bytes", Sizes.of(others).bytes
        yield from _of_store(store)
        yield "python_rss_mb", _resident_mb("self")
        yield "jvm_rss_mb", sum(map(_resident_mb, _jvms()))
        rounds = self.mart.rounds[-20:]
        yield (
            "refresh_s",
            sorted(each.refresh_s for each in rounds)[len(rounds) // 2] if rounds else 0,
        )


def _of_tables(warehouse: Path) -> Iterator[tuple[str, float]]:
    tables, counts = Warehouse(warehouse), dict[str, float]()
    for relation in tables.relations():
        folder = tables.path(relation)
        log = folder / "_delta_log"
        sizes = pa.table(DeltaTable(str(folder)).get_add_actions()).column("size_bytes")
        kept = Sizes(len(sizes), pc.sum(sizes).as_py() or 0)
        is_log = {path: path.is_relative_to(log) for path in folder.rglob("*") if path.is_file()}
        data = Sizes.of(path for path, of_log in is_log.items() if not of_log)
        of_table = {
            "live_files": kept.files,
            "live_bytes": kept.bytes,
            "old_files": data.files - kept.files,
            "old_bytes": data.bytes - kept.bytes,
            "versions": len(list(log.glob("*.json"))),
            "log_files": sum(is_log.values()),
            "log_bytes": Sizes.of(path for path, of_log in is_log.items() if of_log).bytes,
        }
        print(f"  {relation}: {of_table}", file=sys.stderr)
        for name, value in of_table.items():
            counts[name] = counts.get(name, 0) + value
    yield from counts.items()


def _of_store(path: Path) -> Iterator[tuple[str, float]]:
    yield "store_bytes", Sizes.of(path.parent.glob(f"{path.name}*")).bytes
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        for name, query in (
            ("store_free_pages", "pragma freelist_count"),
            ("store_change_rows", "select count(*) from livemart_changes"),
            ("store_snapshots", "select count(*) from livemart_published"),
        ):
            yield name, store.execute(query).fetchone()[0]


def _resident_mb(pid: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS:"))


def _jvms() -> Iterator[str]:
    for thread in Path("/proc/self/task").iterdir():
        for child in (thread / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "java":
                yield child


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the batches and print the figures; return 1 if a model differs from its recomputation."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--orders", type=int, default=20_000, help="orders of the history")
    parser.add_argument("--batch", type=int, default=100, help="orders of a batch")
    parser.add_argument("--at", type=int, nargs="+", default=[100, 500, 1_000], help="batches")
    parser.add_argument("--retention", type=int, default=60, help="seconds that old files stay")
    parser.add_argument("--upkeep", type=int, default=10, help="batches between two upkeeps")
    parser.add_argument("--snapshots", type=int, default=20, help="snapshots that are kept anyway")
    parser.add_argument("--folder", type=Path, help="where to work")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    # Standard output is for figures.
    configure_logs("text", debug=False)

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    with working_folder(given.folder) as folder:
        with _shortened(given.retention, given.upkeep, given.snapshots):
            history = History(given.orders, _SEED)
            batches: list[Batch] = make_batches(history, max(given.at), given.batch)
            store = f"sqlite:///{StateFolder(folder / 'warehouse').path / 'serving.db'}"
            flags = {"store": store, "change_retention": f"{given.retention}s", "memory": "2g"}
            with open_mart(folder, say, flags=flags) as mart:
                mart.fill(history)
                mart.build()
                soak = Soak(mart, given.at)
                if len(mart.refresh(batches)) != len(batches):
                    raise RuntimeError(f"{len(mart.rounds)} of {len(batches)} batches ran")
                _, is_equal = mart.recompute(folder / "scratch")
        for name, value in _figures(soak.looks):
            print(json.dumps({"figure": name, "value": round(value, 4)}), flush=True)
        print(json.dumps({"figure": "answers_equal", "value": int(is_equal)}), flush=True)
    return 0 if is_equal else 1


def _figures(looks: Mapping[int, Mapping[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield each figure at each look, and by how much it has grown from the first to the last."""
    first, last = min(looks), max(looks)
    for name in looks[first]:
        for number, figures in looks.items():
            yield f"{name}_{number}", figures[name]
        if first != last and looks[first][name]:
            yield f"{name}_growth", looks[last][name] / looks[first][name]


if __name__ == "__main__":
    sys.exit(main())
