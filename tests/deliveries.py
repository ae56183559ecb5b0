"""Sources, records and deliveries that the landing tests share."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from livemart.delta.warehouse import Warehouse
from livemart.land.landing import LandedBatch, Landing
from livemart.land.micro_batch import Limit
from livemart.project.graph import Column, SourceTable
from tests.models import stream_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COLUMNS = {
    "order_id": "string",
    "ordered_at": "timestamp",
    "status": "string",
    "items": "array<struct<dish_id:bigint,quantity:int,unit_price:decimal(10,2)>>",
    "updated_at": "timestamp",
    "op": "string",
}


def source(name: str, columns: dict[str, str] = COLUMNS, **spec: Any) -> SourceTable:
    """A source of schema bronze; with `keys` it is sequenced by `updated_at`."""
    spec = {"path": "orders/*.jsonl"} | spec
    if "keys" in spec:
        spec.setdefault("sequence_by", ("updated_at",))
    return SourceTable(
        f"source.test.shop.{name}",
        "shop",
        name,
        "bronze",
        name,
        tuple(Column(column, kind) for column, kind in columns.items()),
        "ordered_at" if "ordered_at" in columns else None,
        "_landed_at",
        stream_spec(**spec),
        "models/sources.yml",
    )


ORDERS = source("orders", keys=("order_id",), apply_as_deletes="op = 'd'")
EVENTS = source("order_events")


def order(order_id: str, minutes: int = 0, **fields: Any) -> dict[str, Any]:
    """A record; `minutes` after noon is its sequence."""
    return {
        "order_id": order_id,
        "ordered_at": NOON.isoformat(),
        "status": "placed",
        "items": [{"dish_id": 1, "quantity": 2, "unit_price": 12.5}],
        "updated_at": (NOON + timedelta(minutes=minutes)).isoformat(),
        "op": "c",
    } | fields


def lines(records: Iterable[dict[str, Any]]) -> list[str]:
    return [json.dumps(record) for record in records]


def disordered_orders(chance: random.Random) -> list[str]:
    """Many versions of few keys, ties of all kinds, repeats, deletes, drift, broken lines."""
    records = []
    for _ in range(1_500):
        record = order(
            f"o{chance.randrange(500)}",
            chance.randrange(6),
            status=chance.choice(["placed", "delivered", "cancelled"]),
            op=chance.choice(["c", "c", "c", "d"]),
        )
        if chance.random() < 0.1:
            record["tip"] = chance.randrange(3)
        if chance.random() < 0.02:
            record["ordered_at"] = chance.choice(["2026-02-28T00:00:00Z", "2027-01-01", None])
        if chance.random() < 0.02:
            record[chance.choice(list(record))] = None
        records.append(record)
    content = lines(records)
    content[::97] = ["{broken"] * len(content[::97])
    return content + content[:200]


@dataclass
class Shop:
    """A landing folder, a warehouse and one `Landing` over them."""

    spark: SparkSession | None
    root: Path
    sources: Sequence[SourceTable] = (ORDERS, EVENTS)
    epoch: str = "direct"
    limit: Limit = field(default_factory=Limit)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.folder = self.root / "landing"
        self.folder.mkdir(exist_ok=True)
        self.warehouse = Warehouse(self.root / "warehouse")
        self.restart()

    @property
    def checkpoint(self) -> Path:
        return self.root / "warehouse" / "_livemart" / "checkpoint"

    def restart(self) -> None:
        """The state that a new process would start with."""
        self.landing = Landing(
            self.spark,  # type: ignore[arg-type]
            self.warehouse,
            self.folder,
            self.sources,
            now=lambda: self.now,
            epoch=self.epoch,
        )
        self.landing._limit = self.limit
        self.landing.create_tables()

    def deliver(self, name: str, content: bytes | str | Sequence[str]) -> Path:
        """Hand a file over by rename."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            text = content if isinstance(content, str) else "\n".join(content) + "\n"
            content = text.encode()
        draft = path.with_name(f".{path.name}")
        draft.write_bytes(content)
        draft.rename(path)
        return path

    def land(self, batch_id: int, *paths: Path) -> LandedBatch:
        """Land some files as one micro-batch, for every source whose folder they are in."""
        files: dict[str, list[Path]] = {}
        for each in self.sources:
            assert each.stream is not None
            folder = each.stream.arrival.path.split("/")[0]
            for path in paths:
                if path.relative_to(self.folder).parts[0] == folder:
                    files.setdefault(each.relation, []).append(path)
        return self.landing.land_files(batch_id, files)

    def run(self) -> list[LandedBatch]:
        """Let the stream land all that waits."""
        batches: list[LandedBatch] = []
        query = self.landing.stream(self.checkpoint, batches.append, trigger="available_now")
        try:
            query.awaitTermination()
        except Exception as error:
            if self.landing.failure is not None:
                raise self.landing.failure from error
            raise
        return batches

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a table of schema bronze, sorted."""
        table: pa.Table = self.warehouse.read(f"bronze.{name}", columns=list(columns))
        return sorted(
            (tuple(row[column] for column in columns) for row in table.to_pylist()), key=str
        )


def assert_ranged_by_key(shop: Shop, least: int) -> None:
    """Assert that the files of the orders hold keys of ranges that do not meet, so many or more."""
    bounds = shop.warehouse.files("bronze.orders").bounds.text_bounds("order_id")
    assert bounds is not None
    ranges = sorted(zip(bounds[0].to_pylist(), bounds[1].to_pylist(), strict=True))
    assert len(ranges) >= least
    assert all(one[1] < other[0] for one, other in pairwise(ranges))
