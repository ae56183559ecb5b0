"""A reader tells an empty store from one that is away."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import NoReturn, cast

import pyarrow as pa
import pytest
from sqlalchemy import event

from livemart.errors import PublishError
from livemart.store.reader import StoreReader
from tests.store.stores import changes_of, fill_store, reference_tables


def test_a_store_that_nobody_filled_is_empty(reader: StoreReader) -> None:
    assert reader.newest() is None
    with pytest.raises(PublishError, match="STORE_EMPTY"), reader.snapshot():
        pass


def test_a_store_that_is_made_while_it_is_looked_for_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "serving.db"

    def come_too_early(*_: object, **__: object) -> NoReturn:
        path.touch()
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", come_too_early)

    with closing(StoreReader.open(f"sqlite:///{path}")) as reader:
        assert reader.newest() is None


def test_what_a_reader_does_wrong_itself_is_not_the_stores(
    store_url: str, reader: StoreReader
) -> None:
    fill_store(store_url, reference_tables())

    with pytest.raises(TimeoutError), reader.snapshot():
        raise TimeoutError("of the reader")
    with pytest.raises(KeyError), reader.snapshot() as view:
        view.rows("unknown", tenants=None)
    with pytest.raises(KeyError), reader.snapshot() as view:
        view.rows("order_arrivals", tenants=None, equals={"unknown": 1})
    with pytest.raises(KeyError):
        changes_of(reader, "unknown", 1, None, 10)


def test_a_reader_that_is_closed_lets_who_reads_come_to_the_end(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))
    reader, opened = StoreReader.open(store_url), list[object]()
    event.listen(reader._engine, "connect", lambda connection, _: opened.append(connection))
    event.listen(reader._engine, "close", lambda connection, _: opened.remove(connection))

    with reader.snapshot() as view:
        before = view.rows("restaurant_order_metrics", tenants=None)
        reader.close()
        assert view.rows("restaurant_order_metrics", tenants=None) == before
        # As a reading does that waited for a thread.
        assert reader.newest() == view.published
        assert len(opened) == 1

    assert opened == []


def test_rows_that_are_still_read_at_the_end_of_a_snapshot_disturb_no_later_one(
    store_url: str, reader: StoreReader
) -> None:
    """An error holds the reading that it ended, while another one gets its connection."""
    fill_store(store_url, {"m": pa.table({"n": [1, 2, 3]})}, {"m": ("n",)})
    with reader.snapshot() as view:
        slices = view.row_slices("m", size=1, tenants=None)
        next(slices)
    fill_store(store_url, {"m": pa.table({"n": [1, 2, 3, 4]})}, {"m": ("n",)}, 2)

    with reader.snapshot() as view:
        first = view.rows("m", tenants=None)
        cast(Generator[object], slices).close()
        rows = view.rows("m", tenants=None)

    assert view.published.snapshot_id == 2
    assert len(first) == len(rows) == 4
