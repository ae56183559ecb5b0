"""A watermark follows the newest event time of its source, and never goes back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.project.graph import SourceTable
from livemart.refresh.context import BatchContext
from livemart.run.watermarks import fix_watermarks, read_watermarks
from tests.models import stream_spec

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARKS = "livemart.watermarks"
TEN_MINUTES = timedelta(minutes=10)


def source(name: str, lateness: timedelta = TEN_MINUTES) -> SourceTable:
    stream = stream_spec(path=f"{name}/*.jsonl", lateness=lateness)
    key = f"source.shop.raw.{name}"
    return SourceTable(key, "raw", name, "bronze", name, (), "at", None, stream, "")


class Batches:
    """Batches over tables whose one column `at` holds the event times that have landed."""

    def __init__(self, root: Path, *sources: SourceTable) -> None:
        self.warehouse = Warehouse(root)
        self.sources = sources
        self.number = 0

    def land(self, name: str, *moments: Any) -> None:
        self.number += 1
        rows = pa.table({"at": pa.array(moments, type_of(moments))})
        self.warehouse.overwrite(f"bronze.{name}", rows, Tag(f"e/bronze.{name}/0", self.number, {}))

    def fix(self, as_of: datetime | None = None, *, is_replay: bool = False) -> int:
        self.number += not is_replay
        context = BatchContext(None, self.warehouse, "e", self.number, "auto", 10, 1)  # type: ignore[arg-type]
        versions = {
            it.relation: self.warehouse.version(it.relation)
            for it in self.sources
            if self.warehouse.exists(it.relation)
        }
        return fix_watermarks(context, MARKS, self.sources, versions, as_of, {})

    @property
    def marks(self) -> dict[str, datetime | None]:
        return dict(read_watermarks(self.warehouse, MARKS))


def type_of(moments: tuple[Any, ...]) -> pa.DataType:
    (first, *_) = moments
    if not isinstance(first, datetime):
        return pa.date32()
    return pa.timestamp("us", tz="UTC" if first.tzinfo else None)


def test_a_watermark_is_the_newest_event_time_less_the_lateness(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", NOON - timedelta(hours=1), NOON + timedelta(microseconds=1), None)

    batches.fix()

    mark = NOON + timedelta(microseconds=1) - TEN_MINUTES
    assert batches.marks == {"complete_to": mark, "raw__orders": mark}


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, date.min, date.max])
def test_a_watermark_follows_the_first_and_the_last_moment_that_there_is(
    tmp_path: Path, moment: date
) -> None:
    """Defaults of producers, and open ends: no lateness leads before the first."""
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment)

    batches.fix(NOON)

    expected = datetime.min.replace(tzinfo=UTC) if moment.year == 1 else NOON
    assert batches.marks["raw__orders"] == expected


def test_the_watermark_of_all_is_the_least_and_unknown_while_one_is(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"), source("payments", timedelta(hours=1)))
    batches.land("orders", NOON)
    batches.fix()
    assert batches.marks["complete_to"] is None

    batches.land("payments", NOON)
    batches.fix()

    assert batches.marks["complete_to"] == NOON - timedelta(hours=1)
    assert batches.marks["raw__orders"] == NOON - TEN_MINUTES


def test_a_watermark_never_goes_back_nor_past_the_clock(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", NOON)
    batches.fix()

    batches.land("orders", NOON - timedelta(days=1))
    batches.fix()
    assert batches.marks["raw__orders"] == NOON - TEN_MINUTES

    batches.land("orders", NOON + timedelta(hours=1))
    batches.fix(as_of=NOON)
    assert batches.marks["raw__orders"] == NOON


def test_a_batch_that_moves_no_watermark_writes_nothing(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", NOON)
    first = batches.fix()

    assert batches.fix() == first


def test_a_replay_keeps_what_the_first_attempt_wrote(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", NOON)
    first = batches.fix()
    number = batches.number
    batches.land("orders", NOON + timedelta(hours=1))
    batches.number = number

    assert batches.fix(is_replay=True) == first
    assert batches.marks["raw__orders"] == NOON - TEN_MINUTES


def test_a_source_that_comes_or_goes_takes_its_column_along(tmp_path: Path) -> None:
    batches = Batches(tmp_path, source("orders"))
    batches.land("orders", NOON)
    batches.fix()
    batches.sources = (source("payments"),)
    batches.land("payments", NOON + timedelta(hours=1))

    batches.fix()

    mark = NOON + timedelta(hours=1) - TEN_MINUTES
    assert batches.marks == {"complete_to": mark, "raw__orders": None, "raw__payments": mark}


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        (date(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 3, 1, 12), NOON),
    ],
)
def test_a_day_or_a_time_without_a_zone_is_one_in_utc(
    tmp_path: Path, moment: date, instant: datetime
) -> None:
    batches = Batches(tmp_path, source("orders", timedelta(0)))
    batches.land("orders", moment)

    batches.fix()

    assert batches.marks["raw__orders"] == instant
