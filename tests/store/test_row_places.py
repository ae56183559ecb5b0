"""The rows behind a row are the rest of the list, in both databases, for every kind and order."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from livemart.store.reader import StoreReader
from livemart.store.row_places import RowPlace, order_columns
from livemart.store.snapshot_view import SnapshotView
from tests.store.stores import fill_store
from tests.store.test_conditions import VALUES


def pages(view: SnapshotView, model: str, size: int, **order: Any) -> list[dict[str, Any]]:
    """Return the rows of a model, page by page, each behind the last row of the one before."""
    in_turn = order_columns(view.models()[model], order.get("order_by", ()))
    found: list[dict[str, Any]] = []
    behind = None
    columns = tuple(dict.fromkeys([*view.models()[model].kinds, *in_turn]))
    while rows := view.rows(
        model, tenants=None, limit=size, behind=behind, columns=columns, **order
    ):
        found += rows
        values = tuple(rows[-1][name] for name in in_turn)
        is_bag = not view.models()[model].row_key
        taken = sum(row[in_turn[-1]] == values[-1] for row in found) if is_bag else 0
        behind = RowPlace(values, taken)
    return found


# 0.2 s in each database.
@pytest.mark.parametrize("key", [("id",), ()])
def test_pages_behind_each_other_are_the_whole_in_every_order(
    store_url: str, reader: StoreReader, key: tuple[str, ...]
) -> None:
    """Each value comes three times, and so does NULL; without a key, half of the rows twice."""
    count = 3 * 8
    ranks = [(number * 5) % 8 for number in range(count)]
    columns = {
        name: pa.array([None if rank == 7 else values[rank] for rank in ranks], kind)
        for name, (kind, values) in VALUES.items()
    }
    flags = pa.array([None if n % 3 == 2 else n % 3 == 1 for n in range(count)], pa.bool_())
    ids = pa.array(range(count) if key else [n // 2 for n in range(count)], pa.int64())
    things = pa.table({"id": ids, "flag": flags, **columns})
    things = things if key else pa.concat_tables([things, things.slice(0, 12)])
    fill_store(store_url, {"things": things}, {"things": key} if key else {})

    with reader.snapshot() as view:
        orders: list[dict[str, Any]] = [{}]
        for name in (*VALUES, "flag"):
            orders += [{"order_by": [name]}, {"order_by": [name], "descending": (name,)}]
        orders += [
            {"order_by": ["flag", "text", "n"], "descending": ("text",)},
            {"order_by": ["flag", "amount"], "descending": True},
        ]
        for order in orders:
            whole = view.rows("things", tenants=None, **order)
            for size in (1, 4):
                found = pages(view, "things", size, **order)
                assert [{name: row[name] for name in things.column_names} for row in found] == [
                    *whole
                ], (order, size)


def test_nan_has_its_place_behind_infinity(store_url: str, reader: StoreReader) -> None:
    ratios = pa.array([math.nan, 1.5, math.inf, math.nan, None], pa.float64())
    table = pa.table({"id": range(5), "ratio": ratios})
    fill_store(store_url, {"things": table}, {"things": ("id",)})

    with reader.snapshot() as view:
        for down, expected in ((), [4, 1, 2, 0, 3]), (("ratio",), [0, 3, 2, 1, 4]):
            found = pages(view, "things", 1, order_by=["ratio"], descending=down)
            assert [row["id"] for row in found] == expected
