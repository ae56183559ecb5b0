"""Many rows go in column by column, slice by slice, as the store's own types would write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlalchemy as sa

from livemart.publish import insert
from livemart.publish.insert import KeyNotUniqueError, insert_all
from livemart.store.schema import Layout, served_table
from livemart.store.served import ServedModel
from livemart.store.store import Store
from livemart.store.value_forms import kind_of

ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", "", None],
        "amount": pa.array([Decimal("1.50"), Decimal("-0.07"), None], pa.decimal128(18, 2)),
        "share": [0.5, float("inf"), None],
        "at": pa.array([datetime(2026, 3, 2, 12, 0, 0, 7, UTC)] * 3, pa.timestamp("us", tz="UTC")),
        "day": pa.array([date(2026, 3, 2), None, date.max]),
        "is_open": [True, False, None],
        "nested": [[1, 2], [], None],
        "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
    }
)
COLUMNS = tuple((field.name, kind_of(field.type)) for field in ROWS.schema)
MODEL = ServedModel("sales", COLUMNS, ("n",), None)


@pytest.fixture
def connection(store_url: str) -> Iterator[sa.Connection]:
    with closing(Store.open(store_url)) as store, store.begin() as opened:
        served_table(Layout("served_sales", MODEL)).create(opened)
        yield opened


def test_values_are_read_as_they_were_written(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert, "_SLICE", 2)
    table = served_table(Layout("served_sales", MODEL))
    slices: list[None] = []

    insert_all(connection, table, MODEL, ROWS, lambda: slices.append(None))

    rows = connection.execute(sa.select(table).order_by(table.c.n)).mappings().all()
    assert [dict(row) for row in rows] == ROWS.to_pylist()
    assert len(slices) == 2


@pytest.mark.parametrize("second", [1, None])
def test_a_key_that_does_not_hold_is_refused(connection: sa.Connection, second: int | None) -> None:
    table = served_table(Layout("served_sales", MODEL))
    rows = ROWS.slice(0, 2).set_column(0, "n", pa.array([1, second], pa.int64()))

    with pytest.raises(KeyNotUniqueError), connection.begin_nested():
        insert_all(connection, table, MODEL, rows, lambda: None)
