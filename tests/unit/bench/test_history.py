"""The benchmark's history: what the measurement promises about it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from bench.history import DAYS, END, ORDERS, History
from bench.live import make_batches


def test_a_history_is_decided_by_its_seed() -> None:
    first = pa.concat_tables(History(500, 1).chunks())

    assert first.equals(pa.concat_tables(History(500, 1).chunks()))
    assert not first.equals(pa.concat_tables(History(500, 2).chunks()))


def test_orders_follow_their_time_and_have_ids_that_grow_with_it() -> None:
    orders = pa.concat_tables(History(2_000, 1).chunks())
    ids, times = orders["order_id"].to_pylist(), orders["ordered_at"].to_pylist()

    assert orders.schema == ORDERS
    assert ids == sorted(set(ids))
    assert times == sorted(times)
    assert END - timedelta(days=DAYS) <= times[0] and times[-1] < END


def test_a_batch_holds_late_orders_and_corrections_of_the_last_day() -> None:
    history = History(20_000, 1)
    known = pa.concat_tables(history.chunks())["order_id"]

    batch = make_batches(history, 2, 1_000)[1]

    orders = batch.orders
    is_new = pc.invert(pc.is_in(orders["order_id"], known))
    late = pc.less(orders["ordered_at"], pa.scalar(batch.now - timedelta(minutes=5)))
    assert orders.num_rows == 1_000
    assert pc.sum(is_new).as_py() == 990
    assert 15 <= pc.sum(pc.and_(is_new, late)).as_py() <= 20
    assert pc.max(orders["updated_at"]).as_py() < batch.now
