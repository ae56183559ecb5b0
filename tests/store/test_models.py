"""Models that change their form: columns, keys, identity, and whether they are served."""

from __future__ import annotations

import random
import string
from decimal import Decimal

import pyarrow as pa
import pytest

from livemart.store.reader import StoreReader
from tests.serve.owner.order_versions import (
    KEYS,
    amounts,
    fill,
    orders,
    publish_versions,
    reader_position,
    served_tables,
)
from tests.store.stores import changes_of, fill_store


def test_a_changed_model_is_copied_whole_and_its_followers_start_anew(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1, 2), 1, fingerprints={"orders": "old"})

    done = fill(store_url, orders(1, 3), 2, fingerprints={"orders": "new"})

    assert done is not None and done.rebuilt == ("orders",)
    assert amounts(reader) == [1, 3]
    assert reader_position(reader, after=1) == "reset"
    assert reader_position(reader, after=2) == "changes"


def test_added_dropped_and_retyped_columns_are_served_as_they_are_now(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1, 2), 1)
    retyped = pa.table(
        {
            "order_id": pa.array(["a", "b"], pa.string()),
            "amount": pa.array([Decimal("1.10"), None], pa.decimal128(10, 2)),
            "note": pa.array(["x", None], pa.string()),
        }
    )

    done = fill(store_url, retyped, 2)

    assert done is not None and done.rebuilt == ("orders",)
    with reader.snapshot() as view:
        served = view.models()["orders"]
        assert view.rows("orders", tenants=None) == retyped.to_pylist()
        assert view.rows("orders", tenants=frozenset({"r1"})) == []
    assert served.columns == (
        ("order_id", "string"),
        ("amount", "decimal(10,2)"),
        ("note", "string"),
    )
    assert served.tenant_column is None


def test_a_column_that_the_change_knows_and_the_store_does_not_is_served(
    store_url: str, reader: StoreReader
) -> None:
    """Delta reads rows of before a column was added with NULL in it: only one row changes."""
    fill(store_url, orders(1, 2), 1)
    old = orders(1, 2).append_column("note", pa.nulls(2, pa.string()))
    new = old.set_column(3, "note", pa.array([None, "extra cheese"]))

    done = publish_versions(store_url, {1: old, 2: new})

    assert done is not None and done.rebuilt == ("orders",)
    with reader.snapshot() as view:
        assert view.rows("orders", tenants=None) == new.to_pylist()


def test_a_key_that_is_declared_later_becomes_the_key(store_url: str, reader: StoreReader) -> None:
    fill_store(store_url, {"orders": orders(1, 2)}, {}, 1)

    done = fill(store_url, orders(1, 2), 2)

    with reader.snapshot() as view:
        assert view.models()["orders"].row_key == ("order_id",)
    assert done is not None and done.rebuilt == ("orders",)


@pytest.mark.parametrize("second", [2, None])
def test_a_key_that_does_not_hold_is_no_key(
    store_url: str, reader: StoreReader, second: int | None
) -> None:
    """Twice the same key, or none at all: a test of severity `warn` may have let it pass."""
    fill(store_url, orders(1, 2), 1)
    ids = pa.array([1, 2, second], pa.int64())
    broken = orders(1, 2, 3).set_column(0, "order_id", ids)

    fill(store_url, broken, 2)
    done = fill(store_url, orders(1, 2, 4), 3)

    with reader.snapshot() as view:
        assert view.models()["orders"].row_key == ()
    assert done is not None and done.rebuilt == ()
    assert sorted(amounts(reader)) == [1, 2, 4]


def test_a_key_longer_than_an_index_takes_is_no_key(store_url: str, reader: StoreReader) -> None:
    """PostgreSQL refuses it when it comes, not before; random text, so that it cannot be packed."""
    long = "".join(random.Random(7).choices(string.printable, k=20_000))
    short = pa.table({"name": ["a"], "amount": [1]})
    fill_store(store_url, {"m": short}, {"m": ("name",)}, 1)

    for number in (2, 3):
        table = pa.table({"name": ["a", long], "amount": [1, number]})
        fill_store(store_url, {"m": table}, {"m": ("name",)}, number)

    assert sorted(amounts(reader, "m")) == [1, 3]


def test_models_come_and_go_with_the_exposures(store_url: str, reader: StoreReader) -> None:
    fill_store(store_url, {"orders": orders(1), "dishes": orders(2)}, KEYS, 1)
    fill_store(store_url, {"orders": orders(1)}, KEYS, 2)
    with reader.snapshot() as view:
        assert view.models().keys() == {"orders"}
    with pytest.raises(KeyError):
        changes_of(reader, "dishes", 1, None, 10)

    fill_store(store_url, {"orders": orders(1), "dishes": orders(3)}, KEYS, 3)

    assert amounts(reader, "dishes") == [3]
    assert reader_position(reader, after=2, model="dishes") == "reset"
    assert reader_position(reader, after=2) == "changes"


def test_a_reader_keeps_its_snapshot_while_a_model_is_rebuilt(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1, 2), 1)
    with reader.snapshot() as view:
        fill(store_url, orders(7, 8, 9), 2, fingerprints={"orders": "new"})

        seen = [row["amount"] for row in view.rows("orders", tenants=None)]
        number = view.published.snapshot_id

    assert (number, seen) == (1, [1, 2])
    assert amounts(reader) == [7, 8, 9]


def test_a_reader_that_stays_does_not_hold_up_publications(
    store_url: str, reader: StoreReader
) -> None:
    """PostgreSQL cannot drop a table that is read: it is dropped when the reader is gone."""
    fill(store_url, orders(1), 1)
    with reader.snapshot() as view:
        first = view.rows("orders", tenants=None)
        for number in (2, 3, 4):
            fill(store_url, orders(number), number, fingerprints={"orders": str(number)})
        last = view.rows("orders", tenants=None)

    fill(store_url, orders(5), 5, fingerprints={"orders": "4"})

    assert first == last == orders(1).to_pylist()
    assert amounts(reader) == [5]
    assert len(served_tables(store_url)) == 1


def test_a_table_that_was_replaced_is_dropped_with_the_next_publication(store_url: str) -> None:
    for number in range(1, 5):
        fill(store_url, orders(number), number, fingerprints={"orders": str(number)})
    fill(store_url, orders(4, 5), 5, fingerprints={"orders": "4"})

    assert len(served_tables(store_url)) == 1


def test_the_last_change_of_a_model_is_known(store_url: str, reader: StoreReader) -> None:
    fill(store_url, orders(1, 2), 1)
    fill(store_url, orders(1, 3), 2)
    fill(store_url, orders(1, 3), 3)

    with reader.snapshot() as view:
        changed_at = view.changed_at("orders", None)
        assert changed_at is not None and changed_at < view.published.published_at
        assert view.row_count("orders") == 2
