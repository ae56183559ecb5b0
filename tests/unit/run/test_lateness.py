"""How late records come is counted once per batch, by day and bound; most of them decide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.project.graph import SourceTable
from livemart.refresh.context import BatchContext
from livemart.run.lateness import measure_lateness
from livemart.run.watermarks import fix_watermarks, read_watermarks
from livemart.state.snapshots import Snapshot
from tests.models import stream_spec

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDERS = SourceTable(
    *("source.shop.raw.orders", "raw", "orders", "bronze", "orders", (), "at", None),
    *(stream_spec(path="o/*.jsonl", lateness="measured"), ""),
)
COUNTS = "livemart.lateness"


class Orders:
    """Orders that land batch by batch, each measured against the batch before it."""

    def __init__(self, root: Path, kind: Any = "us") -> None:
        self.warehouse = Warehouse(root)
        self.kind = pa.timestamp(kind, tz="UTC") if kind == "us" else kind
        self.number = 0
        self.newest: Snapshot | None = None
        self.as_of: datetime | None = None

    def land(self, *moments: datetime) -> timedelta | None:
        """Append the event times, measure, and return the lateness."""
        self.number += 1
        new = pa.table({"at": pa.array(moments).cast(self.kind)})
        if self.warehouse.exists("bronze.orders"):
            new = pa.concat_tables([self.warehouse.read("bronze.orders"), new])
        self.warehouse.overwrite("bronze.orders", new, Tag("e/bronze.orders/0", self.number, {}))
        measured = self.measure()
        version = self.warehouse.version("bronze.orders")
        self.newest = Snapshot(
            *(self.number, "e", self.number, "refresh", self.as_of, {"bronze.orders": version}),
            *({}, {}, "published", NOON, NOON),
        )
        return measured

    def measure(self) -> timedelta | None:
        versions = {"bronze.orders": self.warehouse.version("bronze.orders")}
        return measure_lateness(self.context, "livemart", [ORDERS], versions, self.newest)[
            "raw__orders"
        ]

    @property
    def context(self) -> BatchContext:
        return BatchContext(None, self.warehouse, "e", self.number, "auto", 10, 1)  # type: ignore[arg-type]

    @property
    def counts(self) -> dict[int | None, int]:
        """Records by bound, over all days."""
        rows = self.warehouse.read(COUNTS).to_pylist()
        return {
            bound: sum(row["records"] for row in rows if row["within_s"] == bound)
            for bound in {row["within_s"] for row in rows}
        }


def late(*seconds: float) -> list[datetime]:
    return [NOON - timedelta(seconds=it) for it in seconds]


def test_a_record_counts_for_the_first_bound_that_it_is_not_above(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.land(NOON)

    orders.land(*late(-30, 0, 0.5, 1, 1.000001, 59, 61, 2_592_000, 2_592_001))

    assert orders.counts == {0: 2, 1: 2, 2: 1, 60: 1, 120: 1, 2_592_000: 1, None: 1}


def test_the_lateness_covers_all_but_one_in_a_thousand(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.land(NOON)

    assert orders.land(*late(*[1] * 900, *[25] * 99)) is None, "999 records decide nothing"
    assert orders.land(*late(86_400)) == timedelta(seconds=30)
    assert orders.land(*late(86_400)) == timedelta(days=1)
    assert orders.land(*late(*[3_000_000] * 2)) is None, "more are later than every bound"


def test_the_first_batch_and_a_backlog_count_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.run.lateness._MOST", 3)
    orders = Orders(tmp_path)
    orders.land(*late(*range(2_000)))
    orders.land(*late(5, 5, 5, 5))
    assert not orders.warehouse.exists(COUNTS)

    orders.land(*late(5, 5, 5))

    assert orders.counts == {5: 3}


def test_what_is_older_than_seven_days_of_event_time_is_forgotten(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.land(NOON)
    orders.land(*late(3_600), NOON + timedelta(days=6))
    orders.land(NOON + timedelta(days=6, seconds=-1))
    assert orders.counts == {0: 1, 1: 1, 3_600: 1}

    orders.land(NOON + timedelta(days=7))
    orders.land(NOON + timedelta(days=7))

    assert orders.counts == {0: 2, 1: 1}


def test_a_time_of_the_future_makes_no_other_record_late(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.as_of = NOON
    orders.land(NOON + timedelta(hours=1))

    orders.land(*late(1))

    assert orders.counts == {1: 1}


def test_a_replay_counts_nothing_twice(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.land(NOON)
    before = orders.newest
    orders.land(*late(1, 1))
    orders.newest = before

    orders.measure()

    assert orders.counts == {1: 2}


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")], ids=str)
def test_days_and_times_without_a_zone_are_measured(tmp_path: Path, kind: pa.DataType) -> None:
    orders = Orders(tmp_path, kind)
    orders.land(NOON)

    orders.land(NOON - timedelta(days=1))

    assert orders.counts == {86_400: 1}


def test_the_watermark_waits_for_a_lateness_and_follows_it(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    orders.land(NOON)

    def mark() -> datetime | None:
        versions = {"bronze.orders": orders.warehouse.version("bronze.orders")}
        measured = {"raw__orders": orders.measure()}
        relation = "livemart.watermarks"
        fix_watermarks(orders.context, relation, [ORDERS], versions, None, measured)
        return read_watermarks(orders.warehouse, relation)["raw__orders"]

    assert mark() is None
    orders.land(*late(*[20] * 1_000))

    assert mark() == NOON - timedelta(seconds=20)
