"""The change of judged records is computed from the tables before a batch, without a commit."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.land.records.judge import Group
from livemart.land.records.schema import Stamp
from livemart.land.sources.files.parts import parts_of
from livemart.land.tables import record_schema
from livemart.land.upsert.change import BatchSource, SourceChange
from livemart.land.upsert.deletes import deletes_relation
from livemart.project.graph import SourceTable
from livemart.spark.tables_before import TablesBefore
from tests.deliveries import NOON, ORDERS, Shop, lines, order, source

LATER = NOON + timedelta(hours=1)


def judge(shop: Shop, each: SourceTable, content: list[str]) -> pa.Table:
    """Return records as the readers hand them over, judged for one source."""
    path = shop.deliver("elsewhere/1.jsonl", content)
    group = Group.of([each], record_schema(shop.warehouse, each), LATER)
    parts = parts_of("elsewhere/1.jsonl", path, "json")
    return pa.concat_tables(chain.from_iterable(part.read(group) for part in parts))


def versions(shop: Shop, each: SourceTable) -> dict[str, int]:
    relations = [each.relation, *([deletes_relation(each)] if each.row_rules.keys else [])]
    return {relation: shop.warehouse.version(relation) for relation in relations}


def change(
    shop: Shop, each: SourceTable, content: list[str], before: dict[str, int] | None = None
) -> SourceChange:
    tables = TablesBefore(
        shop.spark,  # type: ignore[arg-type]
        shop.warehouse,
        before or versions(shop, each),
    )
    of_batch = BatchSource(each, 0, Stamp(7, LATER), tables)
    return of_batch.change(judge(shop, each, content))


def rows_of(changes: pa.Table | None) -> list[tuple[Any, ...]]:
    assert changes is not None
    return sorted((row["order_id"], row[OLD_COUNT], row[NEW_COUNT]) for row in changes.to_pylist())


def test_every_record_is_counted_once_whatever_becomes_of_it(tmp_path: Path) -> None:
    each = source(
        "orders", keys=("order_id",), apply_as_deletes="op = 'd'", event_time_is_fixed=True
    )
    shop = Shop(None, tmp_path, [each])
    path = shop.deliver("orders/0.jsonl", lines([order("kept"), order("old"), order("dead")]))
    shop.land(0, path)
    records = [
        order("new", 1),
        order("new", 2),
        order("kept"),
        order("old", 1, ordered_at=LATER.isoformat()),
        order("dead", 1, op="d"),
        order("x", ordered_at="no time"),
    ]

    changed = change(shop, each, [*lines(records), "{broken"])

    counts = changed.counts
    assert (counts.produced, counts.landed, counts.superseded, counts.dead_letters) == (7, 2, 2, 3)
    # A record that is refused moves no clock.
    assert changed.newest_event_time == NOON
    assert counts.dead_letters == changed.letters.count
    assert sorted(changed.letters.table().column("reason").to_pylist()) == [
        "EVENT_TIME_MOVED",
        "MALFORMED_RECORD",
        "TYPE_MISMATCH",
    ]


def test_a_change_is_the_same_after_it_was_committed_and_says_nothing_until_then(
    tmp_path: Path,
) -> None:
    """So is a replay that finds half of its batch in the tables."""
    shop = Shop(None, tmp_path, [ORDERS])
    shop.land(0, shop.deliver("orders/0.jsonl", lines([order("a"), order("b")])))
    content = lines([order("a", 1), order("b", 1, op="d"), order("c")])
    before = versions(shop, ORDERS)

    first = change(shop, ORDERS, content)
    assert versions(shop, ORDERS) == before
    shop.land(1, shop.deliver("orders/1.jsonl", content))
    again = change(shop, ORDERS, content, before)

    assert versions(shop, ORDERS) != before
    assert rows_of(first.landed) == rows_of(again.landed)
    assert rows_of(first.deletes) == rows_of(again.deletes)
    assert first.counts == again.counts
    # With the current tables nothing would be left to do.
    assert change(shop, ORDERS, content).counts.landed == 0


def test_rows_carry_the_batch_and_the_moment_of_their_arrival(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path, [source("order_events")])

    changed = change(shop, shop.sources[0], lines([order("a"), order("a")]))

    stamps = changed.landed.select(["_batch_id", "_landed_at"]).to_pylist()
    assert stamps == [{"_batch_id": 7, "_landed_at": LATER}] * 2
    # Without keys each record is a row, and there is nothing to remember.
    assert changed.deletes is None


@pytest.mark.parametrize(
    ("kind", "values", "newest"),
    [
        ("timestamp", ["2026-03-01T13:00:00+01:00", "2026-03-01T11:59:00Z"], NOON),
        ("timestamp_ntz", ["2026-03-01T12:00:00", "2026-02-01T12:00:00"], NOON),
        ("date", ["2026-03-01", "2026-02-28"], datetime(2026, 3, 1, tzinfo=UTC)),
        ("timestamp", [None], None),
        ("timestamp", [], None),
    ],
)
def test_the_newest_event_time_is_an_instant_whatever_its_type(
    tmp_path: Path, kind: str, values: list[str | None], newest: datetime | None
) -> None:
    columns = {"order_id": "string", "ordered_at": kind}
    shop = Shop(None, tmp_path, [source("orders", columns)])
    records = [{"order_id": "a", "ordered_at": value} for value in values]

    changed = change(shop, shop.sources[0], lines(records) or ["{broken"])

    moment = changed.newest_event_time
    assert moment == newest
    assert moment is None or moment.utcoffset() == timedelta(0)


def test_a_row_of_before_a_column_came_has_none_of_its_values(tmp_path: Path) -> None:
    """The row of a key is found in an earlier version, and is taken away as it is stored now."""
    columns = {"order_id": "string", "ordered_at": "date", "updated_at": "timestamp"}
    narrow = source("orders", columns, keys=("order_id",))
    shop = Shop(None, tmp_path, [narrow])
    record = {"order_id": "a", "ordered_at": "2026-03-01", "updated_at": NOON.isoformat()}
    shop.land(0, shop.deliver("orders/0.jsonl", lines([record])))
    before = versions(shop, narrow)
    wide = source("orders", columns | {"tip": "bigint"}, keys=("order_id",))
    shop.sources = [wide]
    shop.restart()

    newer = record | {"updated_at": LATER.isoformat(), "tip": 2}
    changed = change(shop, wide, lines([newer]), before)

    assert versions(shop, wide) != before
    assert [(row["tip"], row["ordered_at"]) for row in changed.landed.to_pylist()] == [
        (None, date(2026, 3, 1)),
        (2, date(2026, 3, 1)),
    ]
