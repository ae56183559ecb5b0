"""A reader tells an empty store from one that is away, and changes in pages of whole snapshots."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import event

from livemart.errors import PublishError
from livemart.store.reader import StoreReader
from livemart.store.served import Change
from tests.serve.owner.order_versions import fill, orders
from tests.store.stores import fill_store, reference_tables


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
        reader.changes("unknown", 1, None, 10)


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


def test_a_page_ends_between_two_snapshots_whatever_its_limit(
    store_url: str, reader: StoreReader
) -> None:
    """Each snapshot changes the first so many of its five orders."""
    for number, count in enumerate((5, 3, 1, 0, 4, 2), start=1):
        fill(store_url, orders(*[number] * count, *[0] * (5 - count)), number)
    (*whole,) = reader.changes("orders", 1, None, 100).changes
    sizes = {number: len(list(each)) for number, each in groupby(whole, _snapshot_of)}

    for limit in range(1, len(whole) + 2):
        position, pages = 1, list[Sequence[Change]]()
        while position != 6:
            page = reader.changes("orders", position, None, limit)
            assert page.kind == "changes" and page.upto > position
            position = page.upto
            pages.append(page.changes)
        for changes in pages:
            for number, each in groupby(changes, _snapshot_of):
                assert len(list(each)) == sizes[number]
            assert len(changes) <= limit or len({_snapshot_of(it) for it in changes}) == 1
        assert [change for changes in pages for change in changes] == whole


def _snapshot_of(change: Change) -> int:
    return change.snapshot_id


@pytest.mark.parametrize(
    ("after", "is_marked", "kind"),
    [
        (2, True, "changes"),
        # Copied whole with the second snapshot: what was before is not known.
        (1, True, "reset"),
        (3, True, "changes"),
        # Not there yet, or no more.
        (4, True, "reset"),
        (0, True, "reset"),
        (2, False, "reset"),
        (3, False, "reset"),
    ],
)
def test_changes_are_told_from_positions_that_the_store_can_follow(
    store_url: str, reader: StoreReader, after: int, is_marked: bool, kind: str
) -> None:
    fill(store_url, orders(1), 1)
    for number in (2, 3):
        model = {"orders": "another"}
        fill(store_url, orders(*range(number)), number, fingerprints=model)
    mark = None if is_marked else "00000000"

    page = reader.changes("orders", after, None, 100, mark)

    assert page.kind == kind
    assert len(page.changes) == (1 if kind == "changes" and after == 2 else 0)
    # With a reset all rows are read next, and then the changes behind them.
    assert page.upto == 3
    again = reader.changes("orders", page.upto, None, 100, page.mark)
    assert (again.kind, again.changes, again.mark) == ("changes", (), page.mark)
