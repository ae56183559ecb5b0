"""A model of a few orders in the store: what it held, holds and tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import sqlalchemy as sa

from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import Publication, publish
from livemart.store.connections import open_engine
from livemart.store.reader import StoreReader
from livemart.store.schema import METADATA
from livemart.store.store import Store
from tests.store.served_tables import Versions
from tests.store.stores import changes_of, fill_store, make_snapshot, net_change

KEYS = {"orders": ("order_id",)}
START = datetime(2026, 3, 2, tzinfo=UTC)


def orders(*amounts: int, tenant: str = "r1") -> pa.Table:
    """Return one order for each amount, numbered from 1."""
    return pa.table(
        {
            "order_id": pa.array(range(1, len(amounts) + 1), pa.int64()),
            "restaurant_id": pa.array([tenant] * len(amounts), pa.string()),
            "amount": pa.array(amounts, pa.int64()),
        }
    )


def amounts(reader: StoreReader, model: str = "orders") -> list[int]:
    with reader.snapshot() as view:
        return [row["amount"] for row in view.rows(model, tenants=None)]


def fill(url: str, table: pa.Table, number: int, **options: object) -> Publication | None:
    return fill_store(url, {"orders": table}, KEYS, number, START, **options)  # type: ignore[arg-type]


def publish_versions(url: str, tables: dict[int, pa.Table]) -> Publication | None:
    """Publish the newest of some versions; net changes are between them, not against the store."""
    store = Store.open(url)
    spec = ServedSpec("orders", "model.test.orders", "gold.orders", ("order_id",))
    try:
        return publish(
            store,
            make_snapshot(max(tables), ["orders"], START),
            [spec],
            Versions(
                lambda _, old, new: net_change(None if old is None else tables[old], tables[new])
            ),
        )
    finally:
        store.close()


def reader_position(reader: StoreReader, after: int, model: str = "orders") -> str:
    return changes_of(reader, model, after, None, 100).kind


def served_tables(url: str) -> list[str]:
    engine = open_engine(url)
    names = set(sa.inspect(engine).get_table_names())
    engine.dispose()
    assert names >= set(METADATA.tables)
    return sorted(name for name in names if name.startswith("served_"))
