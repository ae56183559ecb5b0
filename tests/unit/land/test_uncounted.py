"""Batches that were landed for a snapshot that never came: the next one counts them, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.land.uncounted import UncountedBatches
from livemart.state.counts import Counts
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.snapshots import Snapshot
from tests.deliveries import NOON, Shop, lines, order

NO_SPARK = None
ORDERS, EVENTS = "bronze.orders", "bronze.order_events"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(NO_SPARK, tmp_path)


def snapshot(epoch: str, batch_id: int) -> Snapshot:
    return Snapshot(
        snapshot_id=1,
        epoch=epoch,
        batch_id=batch_id,
        kind="build",
        as_of=None,
        sources={},
        models={},
        tests={},
        status="published",
        started_at=NOON,
        finished_at=NOON,
    )


def test_a_batch_that_no_snapshot_followed_is_counted_with_the_next(shop: Shop) -> None:
    kept = UncountedBatches(shop.warehouse.root, shop.epoch)
    late = order("b", ordered_at=(NOON + timedelta(minutes=30)).isoformat())
    first = shop.deliver("orders/1.jsonl", ["{broken", *lines([order("a", tip=1), late])])
    kept.keep(shop.land(0, first))
    kept.keep(shop.land(1, shop.deliver("orders/2.jsonl", ["{broken"])))

    again = UncountedBatches(shop.warehouse.root, shop.epoch)
    merged = again.merge([shop.land(2)], None)

    assert merged.counts[ORDERS] == Counts(produced=4, landed=2, superseded=0, dead_letters=2)
    assert merged.newest_event_time == NOON + timedelta(minutes=30)
    assert merged.has_records
    assert merged.drift[ORDERS] == (DriftedField(DriftKind.ADDED, "tip"),)
    assert merged.batch_id == 2
    assert merged.versions == shop.land(2).versions
    # The oldest file of all of them.
    delivered = (shop.folder / "orders" / "1.jsonl").stat().st_mtime
    assert merged.delivered_at == min(datetime.fromtimestamp(delivered, UTC), NOON)


def test_a_batch_that_is_run_again_is_counted_once(shop: Shop) -> None:
    kept = UncountedBatches(shop.warehouse.root, shop.epoch)
    path = shop.deliver("orders/1.jsonl", lines([order("a"), order("b")]))
    kept.keep(shop.land(0, path))
    shop.restart()

    replayed = shop.land(0, path)
    kept.keep(replayed)

    assert kept.merge([replayed], None).counts[EVENTS].produced == 2


def test_what_a_snapshot_has_counted_is_not_counted_again(shop: Shop) -> None:
    kept = UncountedBatches(shop.warehouse.root, shop.epoch)
    for batch_id in range(2):
        path = shop.deliver(f"orders/{batch_id}.jsonl", lines([order(f"o{batch_id}")]))
        kept.keep(shop.land(batch_id, path))
    next_batch = shop.land(2)

    # The process was killed between the row and `forget`.
    assert kept.merge([next_batch], snapshot(shop.epoch, 0)).counts[EVENTS].produced == 1
    assert not kept.merge([next_batch], snapshot(shop.epoch, 1)).has_records
    assert kept.merge([next_batch], snapshot("the one before", 1)).counts[EVENTS].produced == 2
    kept.forget(0)
    assert kept.merge([next_batch], None).counts[EVENTS].produced == 1


def test_a_batch_without_records_leaves_no_note(shop: Shop) -> None:
    UncountedBatches(shop.warehouse.root, shop.epoch).keep(shop.land(0))

    assert not list(shop.warehouse.root.rglob("uncounted"))


def test_a_torn_note_is_an_error_with_advice(shop: Shop) -> None:
    kept = UncountedBatches(shop.warehouse.root, shop.epoch)
    kept.keep(shop.land(0, shop.deliver("orders/1.jsonl", lines([order("a")]))))
    next(shop.warehouse.root.rglob("uncounted/0.json")).write_text('{"landed_at": ')

    with pytest.raises(StateError, match="MANIFEST_TORN") as caught:
        kept.merge([shop.land(1)], None)

    assert "the next snapshot will not count them" in caught.value.hint
