"""The engine's side: a landed history, the first build, a warm stream of batches, a recompute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, Protocol
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

from bench.history import END, History
from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.check.checks import run_checks
from livemart.delta.log import Action
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.inspect.comparison import compare
from livemart.land.records.schema import RESCUED_TYPE, RecordSchema
from livemart.land.tables import create_tables
from livemart.observe.logs import configure_logs
from livemart.plan.project_plans import views_of
from livemart.plan.sql.flatten import flatten
from livemart.project.node_results import NodeProgress
from livemart.run.events import (
    BatchBegan,
    BatchEnded,
    BatchOutcome,
    BatchRetried,
    EditRefused,
    EditTaken,
    LandingBegan,
    RunEvent,
    StepBegan,
)
from livemart.run.pipeline import Pipeline
from livemart.run.runtime import Runtime, open_runtime
from livemart.run.stream import Stream
from livemart.settings import load_settings
from livemart.storage.location import StoragePlace

PROJECT = Path(__file__).resolve().parents[1]
ANSWERS = ("restaurant_order_metrics", "restaurant_top_dishes", "restaurant_sales_trend")
# An idle stream looks for the next batch this often.
_EVERY = timedelta(milliseconds=500)
_TREND = (
    "restaurant_id", "pane_started_at", "order_count", "sales_amount",
    "order_count_1h", "sales_amount_1h", "order_count_24h", "sales_amount_24h",
    "order_count_168h", "sales_amount_168h",
)  # fmt: skip

Rows = frozenset[tuple[Any, ...]]
Say = Callable[[str], None]


class Batch(Protocol):
    """The orders that arrive until `now`."""

    @property
    def now(self) -> datetime: ...

    def deliver(self, landing: StoragePlace, number: int) -> None:
        """Put the batch below the landing folder."""


@dataclass(frozen=True, slots=True)
class Round:
    """One refreshed batch."""

    as_of: datetime
    landing_s: float
    """From the first look at its files."""
    refresh_s: float
    """From the end of landing to the snapshot row."""
    checks_s: float
    """The part of `refresh_s` in the project's tests."""
    models_ms: Mapping[str, float]
    """By model name."""
    commits_ms: Mapping[str, float]
    """By model name."""
    stages_ms: Mapping[str, float]
    """The stages of a model together, by its name."""


class Stopwatch(Warehouse):
    """A warehouse that remembers how long its commits took."""

    def __init__(self, root: StoragePlace) -> None:
        super().__init__(root)
        self.took_ms: dict[str, float] = {}

    def commit(
        self,
        relation: str,
        diff: pa.Table,
        tag: Tag,
        *,
        key: Sequence[str] = (),
        written: Sequence[Action] = (),
    ) -> Commit:
        """Commit, and remember how long it took."""
        started = time.perf_counter()
        done = super().commit(relation, diff, tag, key=key, written=written)
        self.took_ms[relation] = (time.perf_counter() - started) * 1000
        return done


@dataclass
class Mart:
    """The mart over one history."""

    runtime: Runtime
    say: Say
    now: datetime = END - timedelta(seconds=1)
    """The wall clock: that of the batch under way."""
    rounds: list[Round] = field(default_factory=list)
    idle_s: list[float] = field(default_factory=list)
    """The seconds of each look at the landing folder that found nothing new."""
    recomputed_s: dict[str, float] = field(default_factory=dict)
    """The seconds of the last recomputation, by model name."""
    _batches: list[Batch] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)
    _checks_s: float = 0
    _looked_at: float | None = None
    _began: float = 0
    _landing_began: float = 0
    _idle: int = 0

    def fill(self, history: History) -> None:
        """Land a history without files: 100,000 orders a commit, in the order of their time."""
        self.land("restaurants", [history.restaurants()])
        self.land("dishes", [history.dishes()])
        self.land("orders", history.chunks())
        self.land("order_events", history.chunks())

    def land(self, name: str, chunks: Iterable[pa.Table]) -> None:
        """Land rows of one source without files, each table by a commit."""
        # Its own: what it remembers of ten million rows goes with it.
        warehouse = Warehouse(self.runtime.settings.warehouse)
        source = next(
            source for source in self.runtime.project.sources.values() if source.name == name
        )
        create_tables(warehouse, [source], "history")
        for number, rows in enumerate(chunks):
            count = rows.num_rows
            lines = pa.array(np.arange(count)).cast(pa.string())
            rows = (
                rows.append_column("_landed_at", rows.column("updated_at"))
                .append_column("_batch_id", pa.array(np.zeros(count, np.int64)))
                .append_column(
                    "_origin",
                    pc.binary_join_element_wise(f"history/{name}-{number:05}.jsonl", lines, ":"),
                )
                .append_column("_rescued_data", pa.nulls(count, RESCUED_TYPE))
                .select(RecordSchema.of(source).landed.names)
                .append_column(OLD_COUNT, pa.array(np.zeros(count, np.int64)))
                .append_column(NEW_COUNT, pa.array(np.ones(count, np.int64)))
            )
            tag = Tag(f"history/{source.relation}/0", number, {})
            warehouse.commit(source.relation, rows, tag)

    def build(self) -> tuple[float, float]:
        """Build all models with dbt; return seconds without the tests, and those of the tests."""
        started = time.perf_counter()
        with self._timed_checks():
            Pipeline(self.runtime, self.handle, now=lambda: self.now).build()
        return time.perf_counter() - started - self._checks_s, self._checks_s

    def refresh(self, batches: Sequence[Batch], idle: int = 0) -> list[Round]:
        """Stream the batches one by one through landing and refresh, in one warm process.

        `idle`: how many looks that find nothing follow the batches.
        """
        # From here on each commit is timed; nothing was read through the old one that counts.
        self.runtime.warehouse = Stopwatch(self.runtime.warehouse.place)
        self._batches, self._idle = list(batches), idle
        self._deliver()
        with self._timed_checks():
            pipeline = Pipeline(self.runtime, self.handle, now=self._look, stop=self._stop)
            Stream(pipeline).run(_EVERY)
        return self.rounds

    def recompute(self, scratch: Path, compared: Collection[str] = ANSWERS) -> tuple[float, bool]:
        """Compute every model again from the landed tables; compare some with the stored ones.

        Returns:
            Seconds until every model was written as a Delta table below `scratch`, and whether
            those that were compared are equal.
        """
        spark, project = self.runtime.spark, self.runtime.project
        warehouse, places = self.runtime.warehouse, dict[str, Path]()
        views = views_of(project, project.session)
        seconds, is_equal = 0.0, True
        for model in project.models.values():
            if not model.is_stored or model.materialized in ("seed", "snapshot"):
                continue
            assert model.compiled_code is not None
            flat = flatten(model.compiled_code, views)
            path = scratch / model.relation
            started = time.perf_counter()
            text = flat.render(
                lambda mention: (
                    f"delta.`{places.get(mention.relation, warehouse.path(mention.relation))}`"
                )
            )
            writer = spark.sql(text).write.format("delta").mode("overwrite")
            writer.partitionBy(*model.partition_by).save(str(path))
            took = time.perf_counter() - started
            seconds += took
            self.recomputed_s[model.name] = took
            places[model.relation] = path
            self.say(f"recomputed {model.name} in {took:.1f} s")
            if model.name in compared:
                stored = spark.read.format("delta").load(str(warehouse.path(model.relation)))
                found = compare(stored, spark.read.format("delta").load(str(path)), {})
                if not found.is_equal:
                    is_equal = False
                    self.say(f"{model.name} differs from its recomputation: {found}")
        return seconds, is_equal

    def answers(self, since: datetime) -> dict[str, Rows]:
        """Return the rows of the three answers as tuples; of the trend, panes from `since` on."""
        wanted: dict[str, tuple[list[str] | None, pds.Expression | None]] = {
            ANSWERS[0]: (None, None),
            ANSWERS[1]: (None, None),
            ANSWERS[2]: (list(_TREND), pds.field("pane_started_at") >= pa.scalar(since)),
        }
        relations = {model.name: model.relation for model in self.runtime.project.models.values()}
        return {
            name: as_rows(
                self.runtime.warehouse.read(relations[name], columns=columns, filter=kept)
            )
            for name, (columns, kept) in wanted.items()
        }

    def handle(self, event: RunEvent) -> None:
        """Note when landing is over and a batch ends, and say all that spoils the figures."""
        match event:
            case LandingBegan():
                self._landing_began = time.perf_counter()
            case BatchBegan():
                self._began = time.perf_counter()
                self._checks_s = 0
            case BatchEnded(outcome):
                self.batch_ended(outcome)
            case EditTaken(files):
                self.say(f"edited while it is measured: {', '.join(files)}")
            case EditRefused(files, error):
                self.say(f"edited while it is measured: {', '.join(files)}: {error}")
            case BatchRetried(error, failures, attempts):
                self.say(f"batch is run again ({failures} of {attempts} failed): {error}")

    def batch_ended(self, outcome: BatchOutcome) -> None:
        """Note the figures of a batch, and deliver the next one."""
        ended, snapshot = time.perf_counter(), outcome.snapshot
        if snapshot is not None and snapshot.kind == "build":
            return
        if snapshot is None:
            if len(self.rounds) >= len(self._batches):
                self.idle_s.append(ended - self._landing_began)
                self._stop_when_idle()
            return
        assert self._looked_at is not None
        models = self.runtime.project.models
        watch = self.runtime.warehouse
        assert isinstance(watch, Stopwatch)
        names = {model.relation: model.name for model in models.values()}
        stored, stages_ms = self.runtime.plans.stored, Counter[str]()
        for each, state in snapshot.stages.items():
            stages_ms[stored[each].owner.name] += state.took_ms
        self.rounds.append(
            Round(
                snapshot.as_of or self.now,
                self._began - self._looked_at,
                ended - self._began,
                self._checks_s,
                {models[each].name: state.took_ms for each, state in snapshot.models.items()},
                {names[each]: ms for each, ms in watch.took_ms.items() if each in names},
                stages_ms,
            )
        )
        watch.took_ms.clear()
        self.say(
            f"batch {len(self.rounds)}: landed in {self._began - self._looked_at:.2f} s, "
            f"refreshed in {ended - self._began:.2f} s, tests {self._checks_s:.2f} s of it"
        )
        if len(self.rounds) < len(self._batches):
            self._deliver()
        else:
            self._stop_when_idle()

    def _stop_when_idle(self) -> None:
        if len(self.idle_s) >= self._idle:
            self._stop.set()

    def _deliver(self) -> None:
        number = len(self.rounds)
        self.now, self._looked_at = self._batches[number].now, None
        self._batches[number].deliver(self.runtime.settings.landing, number)

    def _look(self) -> datetime:
        """Landing asks for the time when it begins with a batch."""
        if self._looked_at is None:
            self._looked_at = time.perf_counter()
        return self.now

    @contextmanager
    def _timed_checks(self) -> Iterator[None]:
        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return run_checks(*arguments, **options)
            finally:
                self._checks_s = time.perf_counter() - started

        with mock.patch("livemart.run.batch.run_checks", timed):
            yield


def _narrate(say: Say, event: RunEvent) -> None:
    """Say which step begins before the first batch, and which model dbt has built."""
    match event:
        case StepBegan(text):
            say(text)
        case NodeProgress(unique_id, str(status), None) if unique_id.startswith("model."):
            say(f"{unique_id} {status}")


@contextmanager
def open_mart(
    folder: Path,
    say: Say,
    project: Path = PROJECT,
    flags: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Mart]:
    """Open a project, that of this repository, with a warehouse and landing below `folder`.

    `flags`: settings in place of those of a measurement of refreshes alone.
    """
    # Standard output is for figures alone.
    configure_logs("text", debug=False)
    for name in ("warehouse", "landing"):
        (folder / name).mkdir(parents=True)
    settings = load_settings(
        {
            "project_dir": str(project),
            "warehouse": str(folder / "warehouse"),
            "landing": str(folder / "landing"),
            # A copy of the answers, beside the refreshes that are measured, is not part of them.
            "store": "none",
            # Ten million orders in 3 GB, the default, is a second of collecting garbage a batch.
            "memory": "6g",
            **flags,
        },
        environ={},
    )
    with open_runtime(settings, partial(_narrate, say)) as runtime:
        yield Mart(runtime, say)


def as_rows(table: pa.Table) -> Rows:
    """Return rows as tuples, times in UTC without a zone."""
    columns = [
        [
            value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
            for value in column.to_pylist()
        ]
        for column in table.columns
    ]
    return frozenset(zip(*columns, strict=True))
