"""A stream of thousands of micro-batches takes no more of the machine than one of a hundred.

A topic of Kafka, an order in each micro-batch, models of every strategy. 100
micro-batches check all that does not depend on the machine; 2,000, at night, memory and time.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from livemart.run.events import BatchBegan, BatchEnded, RunEvent
from livemart.run.stream import Stream
from tests.integration.run.shop import ORDERS, SOURCES, order, shop_project
from tests.project_run import NOON, ProjectRun, Silent, reasons, strategies
from tests.services.kafka import Kafka
from tests.services.topics import create_topic, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLOCK = "{{ source('livemart', 'clock') }}"
_MODELS = {
    "totals": f"select shop_id, count(*) as orders, sum(amount) as sales from {ORDERS} group by 1",
    "most": f"select shop_id, max(amount) as most from {ORDERS} group by 1",
    "last_hour": f"""
        select shop_id, count(*) as orders from {ORDERS} cross join {_CLOCK}
        where ordered_at > as_of - interval 1 hour and ordered_at <= as_of group by 1""",
    "running": f"""
        select order_id, shop_id,
            sum(amount) over (partition by shop_id order by order_id) as so_far
        from {ORDERS}""",
}
_WARM = 20
# Spark's pools, as HotSpot shortens the names of their threads for the kernel. They start a thread
# for each task though others are idle, up to a bound (128 to 1,024).
_GROWING_POOLS = ("block-m", "broadca", "ResultQ", "shuffle")


@dataclass(frozen=True)
class Sample:
    """The resources that a stream holds after one micro-batch, of Python and the JVM together.

    `threads`: without those of Spark's growing pools.
    `state_files`: of livemart's own state, apart from the log of snapshots, a Delta table whose
    history is kept for days. Spark keeps 100 batches of its checkpoint, landing 1,000 manifests.
    """

    descriptors: int
    threads: int
    state_files: int
    log_bytes: int
    rss_bytes: int
    seconds: float


class Soak(Silent):
    """Sends the next order when a micro-batch has ended, and ends the stream after the last."""

    def __init__(self, batches: int, kafka: Kafka, topic: str, pids: tuple[int, ...]) -> None:
        super().__init__()
        self.stop = Event()
        self.samples: list[Sample] = []
        self.run: ProjectRun | None = None
        self._batches, self._kafka, self._topic, self._pids = batches, kafka, topic, pids
        self._began = monotonic()

    def handle(self, event: RunEvent) -> None:
        super().handle(event)
        match event:
            case BatchBegan():
                self._began = monotonic()
            case BatchEnded(outcome) if outcome.snapshot is not None:
                self.samples.append(self._sample(monotonic() - self._began))
                if len(self.samples) == self._batches:
                    self.stop.set()
                else:
                    self.send()

    def send(self) -> None:
        """Send one order, of one shop of five."""
        assert self.run is not None
        number = len(self.samples)
        self.run.now += timedelta(minutes=1)
        at = (self.run.now - timedelta(seconds=30)).isoformat()
        send(self._kafka, self._topic, _json(number, at))

    def _sample(self, seconds: float) -> Sample:
        assert self.run is not None
        state = self.run.root / "warehouse" / "_livemart"
        logs = self.run.project / "logs"
        return Sample(
            descriptors=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self._pids),
            threads=sum(_threads(pid) for pid in self._pids),
            state_files=sum(1 for path in _files(state) if "snapshots" not in path.parts),
            log_bytes=sum(path.stat().st_size for path in _files(logs)),
            rss_bytes=sum(_rss_bytes(pid) for pid in self._pids),
            seconds=seconds,
        )


@pytest.mark.extended
@pytest.mark.timeout(1_800)
def test_descriptors_threads_files_and_logs_stay_as_they_are(
    spark: SparkSession,
    kafka: Kafka,
    tmp_path: Path,
) -> None:
    samples = soak(spark, kafka, tmp_path, 100)

    for what in ("descriptors", "threads", "log_bytes"):
        first, last = _medians(samples, what, 20)
        assert last <= first * 1.15, (what, [getattr(it, what) for it in samples])
    # Two offsets, two commits, a manifest.
    assert samples[-1].state_files - samples[0].state_files <= 5 * (len(samples) - 1)


@pytest.mark.nightly
@pytest.mark.timeout(14_400)
def test_memory_and_time_stay_as_they_are(
    spark: SparkSession,
    kafka: Kafka,
    tmp_path: Path,
) -> None:
    samples = soak(spark, kafka, tmp_path, 2_000)[100 - _WARM :]

    for what in Sample.__dataclass_fields__:
        is_full = what == "state_files"
        first, last = _medians(samples[1_000:] if is_full else samples, what, 100)
        assert last <= first * 1.15, (what, [getattr(it, what) for it in samples[::20]])


def soak(spark: SparkSession, kafka: Kafka, folder: Path, batches: int) -> list[Sample]:
    """Stream so many micro-batches, and return the samples behind the first 20."""
    topic = create_topic(kafka)
    pid: int = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    watcher = Soak(batches, kafka, topic, (os.getpid(), pid))
    watcher.run = run = shop_project(spark, folder / "run", {}, ())
    arrival = (
        f"kind: kafka\n              options: {{servers: '{kafka.address}', topics: [{topic}]}}"
    )
    run.replace(SOURCES.replace("path: orders/*.jsonl", arrival), **_MODELS)
    run.now, run.watcher = NOON, watcher
    watcher.send()

    Stream(run.pipeline(stop=watcher.stop)).run(timedelta(milliseconds=50))

    assert sum(row["orders"] for row in run.rows("mini.totals")) == batches
    assert "full" not in strategies(run.newest).values(), reasons(run.newest)
    assert run.differing() == []
    return watcher.samples[_WARM:]


def _json(number: int, at: str) -> str:
    return json.dumps(order(number, f"shop {number % 5}", "card", "1.25", at))


def _medians(samples: list[Sample], what: str, width: int) -> tuple[float, float]:
    values = [getattr(it, what) for it in samples]
    return median(values[:width]), median(values[-width:])


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _threads(pid: int) -> int:
    count = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # One may have ended.
        with suppress(OSError):
            count += not (thread / "comm").read_text().startswith(_GROWING_POOLS)
    return count


def _rss_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
