"""`make bench-models`: what a tick of a hundred small models costs, beside other ways to do it.

`bench.models_project` has the models, over three small sources. After the first build by dbt,
batches of changed records go through the stream, in one warm process. They change all sources, one,
none, or the compiled SQL of one model. Then Spark computes every model again and writes it as a
Delta table, DuckDB does so in memory, and dbt builds the project again. The last rounds are
refreshes as commands, a process each. A tick takes from landed records to its snapshot row. JSON
lines on standard output, progress on standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.command import run_command
from bench.history import END
from bench.live import deliver_rows
from bench.mart import Mart, Round, open_mart
from bench.models_project import (
    KINDS,
    MIX,
    UNIT,
    WrittenModel,
    asking,
    kind_name,
    plain,
    write_model,
    write_project,
)
from bench.models_project import models as written_models
from bench.refresh import report, working_folder
from livemart.delta.warehouse import Warehouse
from livemart.epoch import epoch_micros
from livemart.plan.project_plans import ProjectPlans
from livemart.run.input_files import project_files
from livemart.run.project_cache.cache import CachedProject, ProjectCache
from livemart.run.runtime import open_dbt
from livemart.settings import load_settings
from livemart.storage.location import StoragePlace

_SEED = 20260301
_SHOPS, _CITIES, _CUSTOMERS = 500, 100, 2_000
_STEP = timedelta(minutes=5)
_TIME = pa.timestamp("us", tz="UTC")
_SOURCES = ("shops", "orders", "events")
_STRATEGY_WAYS = {"running": "region"}


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed records by source, or the edit of a model."""

    now: datetime
    rows: dict[str, pa.Table]
    project: Path
    edited: WrittenModel | None = None

    def deliver(self, landing: StoragePlace, number: int) -> None:
        """Edit the project, or put the records below the landing folder."""
        if self.edited is not None:
            write_model(self.project, self.edited)
        for source, rows in self.rows.items():
            deliver_rows(landing, source, number, rows)


@dataclass(frozen=True, slots=True)
class Market:
    """Draws records of the three sources; the history has `orders` orders and as many events."""

    orders: int

    def history(self) -> dict[str, pa.Table]:
        """Return the rows of each source that are there before the first batch."""
        rng = np.random.default_rng(_SEED)
        numbers, until = np.arange(self.orders), epoch_micros(END)
        times = until - rng.integers(30 * 86_400_000_000, size=self.orders)
        events = self._events(rng, numbers, times)
        return {
            "shops": self._shops(rng, np.arange(_SHOPS), END),
            "orders": self._orders(rng, numbers, times, until, KINDS - 1),
            # As a landed table it says when its rows have come.
            "events": events.append_column("updated_at", events["happened_at"]),
        }

    def changes(
        self,
        project: Path,
        number: int,
        records: int,
        sources: Sequence[str],
        *,
        newest: int = KINDS - 1,
    ) -> Changes:
        """Return a batch of `records` records of some sources; half of its orders correct others.

        One order is of the kind with the number `newest`.
        """
        rng, now = np.random.default_rng([_SEED, number]), END + _STEP * (number + 1)
        share = {"orders": 6, "events": 3, "shops": 1}
        total = sum(share[source] for source in sources)
        counts = {source: max(1, records * share[source] // total) for source in sources}
        rows = {}
        if count := counts.get("shops"):
            chosen = rng.choice(_SHOPS, min(count, _SHOPS), replace=False)
            rows["shops"] = self._shops(rng, chosen, now)
        if count := counts.get("orders"):
            first = self.orders + number * records
            numbers = np.arange(first, first + count)
            numbers[: count // 2] = rng.choice(self.orders, count // 2, replace=False)
            times = epoch_micros(now) - 1 - rng.integers(300_000_000, size=count)
            rows["orders"] = self._orders(rng, numbers, times, epoch_micros(now), newest)
        if count := counts.get("events"):
            first = self.orders + number * records
            times = epoch_micros(now) - 1 - rng.integers(300_000_000, size=count)
            rows["events"] = self._events(rng, np.arange(first, first + count), times)
        return Changes(now, rows, project)

    def _shops(self, rng: np.random.Generator, numbers: np.ndarray, at: datetime) -> pa.Table:
        return pa.table(
            {
                "shop_id": _names("s", numbers),
                "city": _names("c", rng.integers(_CITIES, size=len(numbers))),
                "updated_at": pa.array([at] * len(numbers), _TIME),
            }
        )

    def _orders(
        self,
        rng: np.random.Generator,
        numbers: np.ndarray,
        times: np.ndarray,
        updated: int,
        newest: int,
    ) -> pa.Table:
        count = len(numbers)
        kinds = rng.integers(KINDS, size=count)
        kinds[-1] = newest
        return pa.table(
            {
                "order_id": _names("o", numbers),
                "shop_id": _names("s", rng.integers(_SHOPS, size=count)),
                "customer_id": _names("u", rng.integers(_CUSTOMERS, size=count)),
                "kind": _kinds(kinds),
                "amount": _amounts(rng, count),
                "ordered_at": pa.array(times).cast(_TIME),
                "updated_at": pa.array(np.full(count, updated)).cast(_TIME),
            }
        )

    def _events(self, rng: np.random.Generator, numbers: np.ndarray, times: np.ndarray) -> pa.Table:
        count = len(numbers)
        return pa.table(
            {
                "event_id": _names("e", numbers),
                "shop_id": _names("s", rng.integers(_SHOPS, size=count)),
                "kind": _kinds(rng.integers(KINDS, size=count)),
                "amount": _amounts(rng, count),
                "happened_at": pa.array(times).cast(_TIME),
            }
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return 1 if stored and recomputed rows differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("--models", type=int, default=100, help=f"a multiple of {UNIT}")
    parser.add_argument("--planned", type=int, default=200, help="models of the project to plan")
    parser.add_argument("--rows", type=int, default=20_000, help="orders before, and events")
    parser.add_argument("--records", type=int, default=200, help="changed records of a batch")
    parser.add_argument("--warm-up", type=int, default=8, help="batches before it counts")
    parser.add_argument("--batches", type=int, default=7, help="of each sort")
    parser.add_argument("--rounds", type=int, default=3, help="refreshes as a command")
    parser.add_argument("--folder", type=Path, help="where to work (2 GB)")
    given = parser.parse_args(arguments)
    with working_folder(given.folder) as root:
        _measure_plans(root / "planned", given.planned)
        folder, bench = root / "mart", _Bench(given.models, given.rows, given.records)
        is_equal = bench.measure_ticks(folder, given.warm_up, given.batches)
        bench.measure_commands(folder, given.rounds)
    report("models_equal", int(is_equal))
    return 0 if is_equal else 1


@dataclass(frozen=True, slots=True)
class _Bench:
    """One project of `models` models over one history, `records` changed records a batch."""

    models: int
    rows: int
    records: int

    def measure_ticks(self, folder: Path, warm_up: int, counted: int) -> bool:
        """Report the figures of a warm process; return whether all rows are as recomputed."""
        began, market = time.monotonic(), Market(self.rows)

        def say(text: str) -> None:
            print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

        folder.mkdir(parents=True)
        project = write_project(folder / "project", self.models)
        batches, counts = self._batches(market, project, warm_up, counted)
        with open_mart(folder, say, project) as mart:
            self._require_mix(mart.runtime.plans)
            for source, rows in market.history().items():
                mart.land(source, [rows])
            cold_s, _ = mart.build()
            say(f"built in {cold_s:.1f} s")
            rounds = iter(mart.refresh(batches, idle=counted))
            of = {sort: [next(rounds) for _ in range(count)] for sort, count in counts.items()}
            self._report_ticks(mart, of)
            spark_s, _ = mart.recompute(folder / "scratch", ())
            duckdb_s, differing = _recompute_in_duckdb(mart)
            dbt_s, _ = mart.build()
        for name, rows_differing in differing.items():
            say(f"{name}: {rows_differing} rows differ from their recomputation")
        tick_s = _median_s(of["all"])
        for name, seconds in (("spark", spark_s), ("dbt", dbt_s), ("duckdb", duckdb_s)):
            report(f"{name}_{self.models}_models_s", seconds)
            report(f"{name}_over_tick", seconds / tick_s)
        return not differing

    def _batches(
        self, market: Market, project: Path, warm_up: int, counted: int
    ) -> tuple[list[Changes], dict[str, int]]:
        """Return the batches in order, and how many of each sort follow each other."""
        # An edit is a batch without records: one that brings some may begin before it is read.
        edits = {("asking", 0): asking(), ("as before", 0): plain()}
        counts = {
            "warm-up": warm_up,
            "all": counted,
            "one": counted,
            "asking": 2,
            "edited": counted,
            "as before": 1,
        }
        batches: list[Changes] = []
        for sort, count in counts.items():
            for place in range(count):
                if (edited := edits.get((sort, place))) is not None:
                    batches.append(Changes(END + _STEP * (len(batches) + 1), {}, project, edited))
                    continue
                # An edited batch brings a kind that no order had.
                newest = KINDS + place if sort == "edited" else 0
                sources = _SOURCES[:1] if sort == "one" else _SOURCES
                batches.append(
                    market.changes(project, len(batches), self.records, sources, newest=newest)
                )
        return batches, counts

    def _require_mix(self, plans: ProjectPlans) -> None:
        """Refuse to measure a project whose models are not refreshed as they are meant to be.

        Raises:
            RuntimeError: with the number of models of each strategy.
        """
        names = (plan.strategy.name for plan in plans.models.values())
        found = Counter(_STRATEGY_WAYS.get(name, name) for name in names)
        wanted = Counter({way: count * self.models // UNIT for way, count in MIX.items()})
        if found != wanted:
            raise RuntimeError(f"strategies are {dict(found)}, and not {dict(wanted)}")

    def _report_ticks(self, mart: Mart, of: dict[str, list[Round]]) -> None:
        tick_s = _median_s(of["all"])
        report(f"tick_{self.models}_models_s", tick_s)
        report("tick_one_source_s", _median_s(of["one"]))
        report("tick_idle_s", median(mart.idle_s))
        report("edit_one_over_plain", _median_s(of["edited"]) / tick_s)
        ways = {model.name: model.way for model in written_models(self.models)}
        taken: dict[str, list[float]] = {way: [] for way in MIX}
        committed: dict[str, list[float]] = {way: [] for way in MIX}
        for round_ in of["all"]:
            for name, took_ms in round_.models_ms.items():
                if took_ms:
                    taken[ways[name]].append(took_ms)
            for name, took_ms in round_.commits_ms.items():
                committed[ways[name]].append(took_ms)
        report("small_full_over_region", median(taken["full"]) / median(taken["region"]))
        for way in MIX:
            report(f"models_ms/{way}", median(taken[way]))
            report(f"models_commit_ms/{way}", median(committed[way] or [0]))

    def measure_commands(self, folder: Path, rounds: int) -> None:
        """Report how long one refresh takes as a command; two more come first, to warm up."""
        if not rounds:
            return
        market, project = Market(self.rows), folder / "project"
        seconds = []
        for number in range(-2, rounds):
            # Numbers that no batch of the stream had.
            batch = market.changes(project, 1_000 + number, self.records, _SOURCES)
            batch.deliver(folder / "landing", 1_000 + number)
            seconds.append(run_command(folder, "refresh", project))
            print(f"refresh in {seconds[-1]:.1f} s", file=sys.stderr, flush=True)
        report(f"refresh_command_{self.models}_s", median(seconds[2:]))


def _measure_plans(folder: Path, count: int) -> None:
    """Report how long a project is planned, and how long the plans take that a command kept."""
    project_dir = write_project(folder / "project", count)
    settings = load_settings(
        {
            "project_dir": str(project_dir),
            "warehouse": str(folder / "warehouse"),
            "landing": str(folder / "landing"),
        },
        environ={},
    )
    look = project_files(settings).look()
    dbt = open_dbt(settings, None)
    project = dbt.load()
    started = time.perf_counter()
    plans = ProjectPlans(project)
    report(f"plan_{count}_models_s/fresh", time.perf_counter() - started)
    assert dbt.artifact is not None
    cached = CachedProject(project, dbt.files_read(), dbt.artifact, plans)
    ProjectCache(settings, look).write(cached)
    started = time.perf_counter()
    kept = ProjectCache(settings, look).read()
    if kept is None:
        raise RuntimeError("the plans were not kept")
    kept.plans.resumed(lambda relation: None)
    report(f"plan_{count}_models_s/kept", time.perf_counter() - started)


def _recompute_in_duckdb(mart: Mart) -> tuple[float, dict[str, int]]:
    """Return DuckDB's seconds for all models, and how many rows of each differ, where any do."""
    project, warehouse = mart.runtime.project, Warehouse(mart.runtime.settings.warehouse)
    db = duckdb.connect(config={"threads": "2"})
    differing = {}
    try:
        db.execute("set timezone = 'UTC'")
        for schema in ("raw", "mart"):
            db.execute(f"create schema {schema}")
        for relation in (f"raw.{source}" for source in _SOURCES):
            db.register("given", warehouse.read(relation))
            db.execute(f"create table {relation} as from given")
        started = time.perf_counter()
        for model in project.models.values():
            db.execute(f"create table {model.relation} as {model.compiled_code}")
        seconds = time.perf_counter() - started
        for model in project.models.values():
            db.register("stored", warehouse.read(model.relation))
            names = ", ".join(db.sql("from stored").columns)
            both = [f"select {names} from {relation}" for relation in ("stored", model.relation)]
            counted = "select count(*) from ({} except all {})"
            found = [
                db.execute(counted.format(*sides)).fetchall()[0][0] for sides in (both, both[::-1])
            ]
            if sum(found):
                differing[model.name] = sum(found)
    finally:
        db.close()
    return seconds, differing


def _median_s(rounds: Sequence[Round]) -> float:
    return median(each.refresh_s - each.checks_s for each in rounds)


def _names(letter: str, numbers: np.ndarray) -> pa.ChunkedArray | pa.Array:
    return pc.binary_join_element_wise(letter, pa.array(numbers).cast("string"), "")


def _kinds(numbers: np.ndarray) -> pa.Array:
    return pa.array([kind_name(number) for number in numbers.tolist()])


def _amounts(rng: np.random.Generator, count: int) -> pa.ChunkedArray:
    amounts = pa.array(rng.integers(100_000, size=count)).cast(pa.decimal128(21, 2))
    return amounts.cast(pa.decimal128(12, 2))


if __name__ == "__main__":
    sys.exit(main())
