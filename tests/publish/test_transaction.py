"""A publication's transaction leaves a whole store behind, and drops only what no one reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from livemart.publish import transaction
from livemart.publish.transaction import prune
from livemart.store.reader import StoreReader
from livemart.store.schema import CHANGES, MODELS, PUBLISHED
from livemart.store.store import Store
from tests.serve.owner.order_versions import fill, orders, served_tables

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def connection(store_url: str) -> Iterator[sa.Connection]:
    """A store with five snapshots, an hour between two of them, and a change of each."""
    fill(store_url, orders(1), 1)
    with closing(Store.open(store_url)) as store, store.begin() as opened:
        opened.execute(sa.delete(PUBLISHED))
        for number in range(1, 6):
            at = NOON - timedelta(hours=5 - number)
            row = {"snapshot_id": number, "published_at": at, "checked_at": at, "epoch": "epoch"}
            opened.execute(sa.insert(PUBLISHED).values(row))
            change = {"model": "orders", "snapshot_id": number, "position": 0, "op": "insert"}
            opened.execute(sa.insert(CHANGES).values(**change, row={}))
        assert opened.execute(sa.select(MODELS.c.model)).scalars().all() == ["orders"]
        yield opened


@pytest.mark.parametrize(
    ("kept", "retention", "expected"),
    [
        (200, timedelta(0), [1, 2, 3, 4, 5]),
        (1, DAY, [1, 2, 3, 4, 5]),
        (1, timedelta(hours=2), [3, 4, 5]),
        (4, timedelta(hours=2), [2, 3, 4, 5]),
        (1, timedelta(0), [5]),
    ],
)
def test_a_snapshot_is_kept_while_it_is_young_or_among_the_newest(
    connection: sa.Connection,
    monkeypatch: pytest.MonkeyPatch,
    kept: int,
    retention: timedelta,
    expected: list[int],
) -> None:
    monkeypatch.setattr(transaction, "KEPT_SNAPSHOTS", kept)

    prune(connection, NOON, retention)

    for table in (PUBLISHED, CHANGES):
        query = sa.select(table.c.snapshot_id).order_by(table.c.snapshot_id)
        assert connection.execute(query).scalars().all() == expected


def test_a_file_of_sqlite_that_is_mostly_empty_shrinks_a_part_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, look = f"sqlite:///{tmp_path / 'serving.db'}", list[int]()
    monkeypatch.setattr(transaction, "_PAGES_GIVEN_BACK", 40)
    fill(url, orders(*range(20_000)), 1)
    for number in range(2, 8):
        with closing(Store.open(url)) as store, store.begin() as connection:
            look.append(connection.exec_driver_sql("pragma page_count").scalar_one())
        # The table of the first rows is dropped by the third publication.
        fill(url, orders(1), number, fingerprints={"orders": "b"})

    assert look[0] > 140
    assert max(before - after for before, after in pairwise(look)) == 40
    assert look[-1] < 40
    with closing(Store.open(url)) as store, store.begin() as connection:
        assert connection.exec_driver_sql("pragma integrity_check").scalar_one() == "ok"


def test_a_replaced_table_stays_for_one_more_publication(store_url: str) -> None:
    counts = []
    for number, fingerprint in enumerate(("a", "b", "b"), start=1):
        fill(store_url, orders(number), number, fingerprints={"orders": fingerprint})
        counts.append(len(served_tables(store_url)))

    assert counts == [1, 2, 1]


def test_a_transaction_that_is_broken_off_leaves_the_store_as_it_was(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1, 2), 1)
    before = reader.newest()

    def step(name: str) -> None:
        if name == "publish.in_transaction":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(store_url, orders(1, 3), 2, step=step)

    assert reader.newest() == before
    with reader.snapshot() as view:
        assert [row["amount"] for row in view.rows("orders", tenants=None)] == [1, 2]
