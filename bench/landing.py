"""`make bench-landing`: how fast records land, beside a plain stream of Spark over the same files.

For each kind of record and source: one file of orders through the front door, a stream that runs
until nothing waits, into an empty table. Beside it Spark reads the same file as a stream into
Delta, without keys, dead letters or counts. `landing_<kind>_over_plain` is the ratio of the speeds.
`landing_<kind>_rss_mb` is how much more memory the driver's Python and JVM hold at most than
before. The kind http sends requests to a server, see `bench/http_ingest.py`. Kinds of brokers are
the same orders in a topic or stream of `bench/order_logs.py`, beside Kafka's a plain stream of
Spark's own source. JSON lines on standard output, progress on standard error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bench.http_ingest import measure_http
from bench.order_logs import LOG_KINDS, order_log, peer_jars
from bench.orders import COLUMNS, orders_of, source_of
from bench.refresh import label_of, report, working_folder
from bench.resident_memory import ResidentMemory
from livemart.delta.warehouse import Warehouse
from livemart.land.landing import Landing
from livemart.project.graph import Arrival, Format, RecordRules, RowRules, SourceTable, StreamSpec
from livemart.settings import Settings, load_settings
from livemart.spark.jars import require_jars
from livemart.spark.session import open_session
from tests.services.maven import NotInstalledError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = 10_000
FILE_KINDS = (
    *("json_append", "json_keyed", "csv_append", "parquet_append", "parquet_keyed"),
    # The source does not declare one of the fields.
    *("json_drift", "csv_drift", "parquet_drift"),
)
KINDS = (*FILE_KINDS, *LOG_KINDS, "http")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures; return 1 if not all records came in."""
    parser = argparse.ArgumentParser(prog="python -m bench.landing", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="of each file or topic")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--folder", type=Path, help="where to work (2 GB)")
    given = parser.parse_args(arguments)
    is_whole = True
    with working_folder(given.folder) as root:
        settings = load_settings(
            {"warehouse": str(root / "warehouse"), "landing": str(root / "landing")}, environ={}
        )
        jars = (*require_jars(settings.jars), *peer_jars(given.kinds))
        spark = open_session(settings, jars=jars)
        try:
            # The first query of a process is slower than all others.
            warm = _deliver(root / "warm", "json", 1_000)
            _land_plainly(spark, root / "plain", warm)
            bench = _Bench(spark, settings, root, given.records)
            for kind in given.kinds:
                if kind == "http":
                    is_whole &= measure_http(root)
                elif kind in LOG_KINDS:
                    is_whole &= bench.measure_log(kind)
                else:
                    is_whole &= bench.measure_file(kind)
        finally:
            spark.stop()
    report("landing_whole", int(is_whole))
    return 0 if is_whole else 1


class _Bench:
    """Measures kinds, each into an empty table; what is plain is measured once for a format."""

    def __init__(self, spark: SparkSession, settings: Settings, root: Path, records: int) -> None:
        self._spark = spark
        self._settings = settings
        self._root = root
        self._records = records
        self._plain: dict[str, float] = {}

    def measure_file(self, kind: str) -> bool:
        """Report figures of a file; return whether all of it landed."""
        record_format, _, tables = kind.partition("_")
        path = _deliver(self._root / "landing", record_format, self._records)
        if record_format not in self._plain:
            self._plain[record_format] = _timed(
                f"plain {record_format}",
                lambda: _land_plainly(self._spark, self._root / "plain", path),
            )
        source = _source(kind, record_format, is_keyed=tables == "keyed")
        if tables == "drift":
            declared = tuple(column for column in source.columns if column.name != "status")
            source = replace(source, columns=declared)
        seconds, is_whole = self._landed(kind, source)
        report(f"landing_{kind}_mb_per_s", path.stat().st_size / 1e6 / seconds)
        report(f"landing_{kind}_over_plain", self._plain[record_format] / seconds)
        return is_whole

    def measure_log(self, kind: str) -> bool:
        """Report figures of a topic or stream; return whether all of it landed."""
        try:
            with order_log(kind, self._root, self._records) as log:
                seconds, is_whole = self._landed(kind, log.source)
                if log.plain is not None:
                    plain = log.plain
                    folder = self._root / "plain"
                    took = _timed(f"plain {kind}", lambda: _write(plain(self._spark), folder))
                    report(f"landing_{kind}_over_plain", took / seconds)
        except NotInstalledError as error:
            sys.stderr.write(f"{kind} is left out: {error}\n")
            return True
        return is_whole

    def _landed(self, kind: str, source: SourceTable) -> tuple[float, bool]:
        with ResidentMemory() as memory:
            seconds = _timed(f"landing {kind}", lambda: _land(self._spark, self._settings, source))
        count = Warehouse(self._settings.warehouse).row_count(source.relation)
        report(f"landing_{label_of(self._records)}_{kind}_per_s", self._records / seconds)
        report(f"landing_{kind}_rss_mb", memory.growth_mb)
        return seconds, count == self._records


def _source(kind: str, record_format: str, *, is_keyed: bool) -> SourceTable:
    spec = StreamSpec(
        Arrival(path=f"{record_format}/*"),
        RecordRules(_format(record_format)),
        RowRules(("order_id",), ("updated_at",)) if is_keyed else RowRules(),
    )
    return source_of(kind, spec)


def _format(name: str) -> Format:
    formats: dict[str, Format] = {"json": "json", "csv": "csv", "parquet": "parquet"}
    return formats[name]


def _timed(label: str, body: Callable[[], None]) -> float:
    started = time.perf_counter()
    body()
    seconds = time.perf_counter() - started
    sys.stderr.write(f"{label}: {seconds:.1f} s\n")
    return seconds


def _land(spark: SparkSession, settings: Settings, source: SourceTable) -> None:
    warehouse = Warehouse(settings.warehouse)
    landing = Landing(spark, warehouse, settings.landing, [source], settings)
    checkpoint = settings.warehouse / "_livemart" / source.name
    landing.stream(checkpoint, lambda batch: None, trigger="available_now").awaitTermination()


def _land_plainly(spark: SparkSession, folder: Path, path: Path) -> None:
    schema = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    reader = spark.readStream.schema(schema).format(path.suffix[1:]).option("header", True)
    _write(reader.load(str(path.parent)), folder)


def _write(frame: DataFrame, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    writer = frame.writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "table")).awaitTermination()


def _deliver(landing: Path, record_format: str, count: int) -> Path:
    """Write one file of orders, unless it is there."""
    path = landing / record_format / f"orders.{record_format}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True)
    if record_format == "parquet":
        pq.write_table(_table(count), path)
        return path
    with path.open("w", encoding="utf-8") as file:
        if record_format == "csv":
            file.write(",".join(COLUMNS) + "\n")
        for start in range(0, count, _LINES):
            orders = orders_of(start, min(start + _LINES, count))
            if record_format == "csv":
                file.writelines(",".join(map(str, order.values())) + "\n" for order in orders)
            else:
                file.writelines(json.dumps(order) + "\n" for order in orders)
    return path


def _table(count: int) -> pa.Table:
    text = pa.Table.from_pylist(list(orders_of(0, count)))
    time_type, columns = pa.timestamp("us", tz="UTC"), {}
    for name, kind in COLUMNS.items():
        column = text.column(name)
        if kind == "timestamp":
            column = column.cast(time_type)
        elif kind != "string":
            column = column.cast(pa.int32() if kind == "int" else pa.decimal128(10, 2))
        columns[name] = column
    return pa.table(columns)


if __name__ == "__main__":
    sys.exit(main())
