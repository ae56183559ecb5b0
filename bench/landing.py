"""`make bench-landing`: how fast records land, beside a plain stream of Spark over the same files.

For each kind of record and source: one file of orders through the front door, a stream that runs
until nothing waits, into an empty table. Beside it Spark reads the same file as a stream into
Delta, without keys, dead letters or counts; `landing_<kind>_over_plain` is the ratio of the speeds,
`landing_<kind>_rss_mb` what the driver's Python and JVM hold at most above what they held before.
Of kind http are requests to a server, see `bench/http_ingest.py`. JSON lines on standard output,
progress on standard error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bench.http_ingest import measure_http
from bench.refresh import label_of, report
from bench.resident_memory import ResidentMemory
from livemart.delta.warehouse import Warehouse
from livemart.land.landing import Landing
from livemart.project.graph import (
    Arrival,
    Column,
    Format,
    RecordRules,
    RowRules,
    SourceTable,
    StreamSpec,
)
from livemart.settings import Settings, load_settings
from livemart.spark.open import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = {
    "order_id": "string",
    "restaurant_id": "string",
    "ordered_at": "timestamp",
    "status": "string",
    "total": "decimal(10,2)",
    "items": "int",
    "updated_at": "timestamp",
}
_START = datetime(2026, 3, 1, tzinfo=UTC)
_LINES = 10_000
KINDS = ("json_append", "json_keyed", "csv_append", "parquet_append", "parquet_keyed", "http")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures; return 1 if not all records came in."""
    parser = argparse.ArgumentParser(prog="python -m bench.landing", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="of each file")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--folder", type=Path, help="where to work (2 GB)")
    given = parser.parse_args(arguments)
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    is_whole = True
    with tempfile.TemporaryDirectory(prefix="livemart-bench-", dir=given.folder) as folder:
        root = Path(folder)
        settings = load_settings(
            {"warehouse": str(root / "warehouse"), "landing": str(root / "landing")}, environ={}
        )
        spark = open_session(settings)
        try:
            # The first query of a process is slower than all others.
            warm = _deliver(root / "warm", "json", 1_000)
            _land_plainly(spark, root / "plain", warm)
            plain: dict[str, float] = {}
            for kind in given.kinds:
                if kind == "http":
                    is_whole &= measure_http(root)
                    continue
                record_format, _, tables = kind.partition("_")
                path = _deliver(root / "landing", record_format, given.records)
                if record_format not in plain:
                    plain[record_format] = _timed(
                        f"plain {record_format}",
                        lambda path=path: _land_plainly(spark, root / "plain", path),  # type: ignore[misc]
                    )
                source = _source(kind, record_format, is_keyed=tables == "keyed")
                with ResidentMemory() as memory:
                    seconds = _timed(
                        f"landing {kind}",
                        lambda source=source: _land(spark, settings, source),  # type: ignore[misc]
                    )
                count = Warehouse(settings.warehouse).row_count(source.relation)
                is_whole &= count == given.records
                megabytes = path.stat().st_size / 1e6
                report(f"landing_{label_of(given.records)}_{kind}_per_s", given.records / seconds)
                report(f"landing_{kind}_mb_per_s", megabytes / seconds)
                report(f"landing_{kind}_over_plain", plain[record_format] / seconds)
                report(f"landing_{kind}_rss_mb", memory.growth_mb)
        finally:
            spark.stop()
    report("landing_whole", int(is_whole))
    return 0 if is_whole else 1


def _source(kind: str, record_format: str, *, is_keyed: bool) -> SourceTable:
    columns = tuple(Column(name, data_type) for name, data_type in _COLUMNS.items())
    spec = StreamSpec(
        Arrival(path=f"{record_format}/*"),
        RecordRules(_format(record_format)),
        RowRules(("order_id",), ("updated_at",)) if is_keyed else RowRules(),
    )
    names = (f"source.bench.shop.{kind}", "shop", kind, "bronze", kind)
    return SourceTable(*names, columns, "ordered_at", None, spec, "bench/landing.py")


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
    shutil.rmtree(folder, ignore_errors=True)
    schema = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
    reader = spark.readStream.schema(schema).format(path.suffix[1:]).option("header", True)
    writer = reader.load(str(path.parent)).writeStream.format("delta")
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
            file.write(",".join(_COLUMNS) + "\n")
        for start in range(0, count, _LINES):
            orders = _orders(start, min(start + _LINES, count))
            if record_format == "csv":
                file.writelines(",".join(map(str, order.values())) + "\n" for order in orders)
            else:
                file.writelines(json.dumps(order) + "\n" for order in orders)
    return path


def _orders(start: int, end: int) -> Iterator[dict[str, object]]:
    for number in range(start, end):
        at = (_START + timedelta(seconds=number % 86_400)).isoformat()
        yield {
            "order_id": f"o{number}",
            "restaurant_id": f"r{number % 500}",
            "ordered_at": at,
            "status": "placed",
            "total": f"{number % 9_000 / 100:.2f}",
            "items": number % 7 + 1,
            "updated_at": at,
        }


def _table(count: int) -> pa.Table:
    text = pa.Table.from_pylist(list(_orders(0, count)))
    time_type, columns = pa.timestamp("us", tz="UTC"), {}
    for name, kind in _COLUMNS.items():
        column = text.column(name)
        if kind == "timestamp":
            column = column.cast(time_type)
        elif kind != "string":
            column = column.cast(pa.int32() if kind == "int" else pa.decimal128(10, 2))
        columns[name] = column
    return pa.table(columns)


if __name__ == "__main__":
    sys.exit(main())
