"""A store that lost something, is behind or of another form is filled again by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import event

from livemart.errors import PublishError
from livemart.inspect.store_standing import look_at_store
from livemart.publish import transaction
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import Publication, publish
from livemart.store import snapshot_view
from livemart.store.connections import open_engine
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.serve.owner.order_versions import (
    KEYS,
    START,
    amounts,
    fill,
    orders,
    publish_versions,
    reader_position,
    served_tables,
)
from tests.store.served_tables import Versions
from tests.store.stores import changes_of, fill_store, make_snapshot, net_change


@pytest.fixture
def execute(store_url: str) -> Iterator[Callable[[str], None]]:
    """Runs SQL in the store, as somebody would who should not."""
    engine = open_engine(store_url, writes=True)

    def run(statement: str) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)

    yield run
    engine.dispose()


@pytest.mark.gate_takes_every(3)
@pytest.mark.parametrize(
    "damage",
    [
        "delete from livemart_published",
        "delete from livemart_models",
        "delete from livemart_store",
        "update livemart_store set schema_version = 0",
        "drop table livemart_changes",
        "drop table served_orders",
        "delete from served_orders where order_id = 2",
        "insert into served_orders values (9, 'r1', 9)",
    ],
)
def test_a_damaged_store_is_mended_at_the_next_start(
    store_url: str, reader: StoreReader, execute: Callable[[str], None], damage: str
) -> None:
    fill(store_url, orders(1, 2, 3), 1)
    execute(damage)

    done = fill(store_url, orders(1, 2, 3), 1, is_start=True)

    assert done is not None and done.rebuilt == ("orders",)
    assert amounts(reader) == [1, 2, 3]
    assert fill(store_url, orders(1, 2, 3), 1, is_start=True) is None
    for number in (2, 3):
        later = fill(store_url, orders(1, 2, number), number)
        assert later is not None and later.rebuilt == ()
    assert amounts(reader) == [1, 2, 3]


def test_a_model_that_the_database_does_not_take_keeps_its_rows_and_the_others_go_on(
    store_url: str, reader: StoreReader
) -> None:
    # More columns than either database has room for, and a tenant that PostgreSQL cannot index.
    wide = pa.table({f"c{number}": [1] for number in range(2_100)})
    names = orders(1, 2)
    long = "".join(sha256(bytes([number])).hexdigest() for number in range(200))
    other = names.set_column(1, "restaurant_id", pa.array(["r1", long]))
    is_refused = not store_url.startswith("sqlite")

    def fill_all(number: int, named: pa.Table) -> Publication:
        models = {"orders": orders(*range(1, number + 1)), "names": named, "wide": wide}
        done = fill_store(store_url, models, KEYS, number, START)
        assert done is not None
        return done

    assert list(fill_all(1, names).refused) == ["wide"]
    assert amounts(reader) == [1]
    second = fill_all(2, other)
    third = fill_all(3, other)

    assert amounts(reader) == [1, 2, 3]
    expected = ["names", "wide"] if is_refused else ["wide"]
    assert sorted(second.refused) == sorted(third.refused) == expected
    published = reader.newest()
    assert published is not None
    assert published.refreshed_at("wide") == (1, None)
    if is_refused:
        since = published.refreshed_at("names")
        assert since is not None and since[0] == 2 and since[1] is not None
        assert amounts(reader, "names") == [1, 2]
    mended = fill_all(4, names)
    assert list(mended.refused) == ["wide"]
    newest = reader.newest()
    assert newest is not None and newest.refreshed_at("names") is None


@pytest.mark.parametrize(
    "damage",
    [
        "delete from livemart_published",
        "drop table served_orders",
        "delete from served_orders where order_id = 2",
        "insert into served_orders values (4, 'r1', 9)",
    ],
)
def test_a_store_damaged_while_it_is_filled_is_mended_by_a_change_that_meets_it(
    store_url: str, reader: StoreReader, execute: Callable[[str], None], damage: str
) -> None:
    fill(store_url, orders(1, 2, 3), 1)
    tables = {1: orders(1, 2, 3), 2: orders(1, 7, 3, 4)}
    execute(damage)

    done = publish_versions(store_url, tables)

    assert done is not None and done.rebuilt == ("orders",)
    assert amounts(reader) == [1, 7, 3, 4]
    assert reader_position(reader, after=1) == "reset"


def test_tables_of_others_in_the_same_database_stay(
    store_url: str, reader: StoreReader, execute: Callable[[str], None]
) -> None:
    execute("create table livemart_access_tokens (token_id text)")
    execute("create table served_orders (mine text)")
    execute("insert into served_orders values ('not yours')")
    fill(store_url, orders(1), 1)
    execute("update livemart_store set schema_version = 0")

    for number in range(1, 4):
        fill(store_url, orders(number), number, fingerprints={"orders": str(number)})

    assert amounts(reader) == [3]
    execute("insert into livemart_access_tokens select mine from served_orders")


def test_a_lost_file_is_made_anew_under_an_open_reader(tmp_path: Path) -> None:
    path = tmp_path / "serving.db"
    reader = StoreReader.open(f"sqlite:///{path}")
    fill(f"sqlite:///{path}", orders(1), 1)
    assert amounts(reader) == [1]
    for file in tmp_path.glob("serving.db*"):
        file.unlink()

    lost = reader.newest()
    fill(f"sqlite:///{path}", orders(2), 2)

    assert lost is None
    assert amounts(reader) == [2]
    reader.close()


def test_a_warehouse_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "joe's 100%25 ware?house#1 麺"
    fill(f"sqlite:///{tmp_path}/{folder}/serving.db", orders(1), 1)
    monkeypatch.chdir(tmp_path)
    relative = StoreReader.open(f"sqlite:///{folder}/serving.db")

    assert amounts(relative) == [1]
    assert {path.name for path in (tmp_path / folder).iterdir()} >= {"serving.db"}
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    relative.close()


def test_a_store_that_missed_snapshots_gets_their_net_change(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1, 2), 1)

    done = fill(store_url, orders(1, 5, 6), 9)

    assert done is not None and (done.rebuilt, done.rows_changed) == ((), {"orders": 2})
    assert [c.op for c in changes_of(reader, "orders", 1, None, 100).changes] == [
        "update",
        "insert",
    ]


def test_an_older_snapshot_does_not_set_the_store_back(store_url: str, reader: StoreReader) -> None:
    fill(store_url, orders(5), 5)

    done = fill(store_url, orders(4), 4)

    assert done is None
    assert amounts(reader) == [5]


@pytest.mark.parametrize(
    ("number", "epoch", "is_start"),
    [(4, "epoch", True), (4, "another", False), (5, "another", False)],
)
def test_a_store_that_is_ahead_of_its_log_belongs_to_another_and_is_filled_anew(
    store_url: str, reader: StoreReader, number: int, epoch: str, is_start: bool
) -> None:
    fill(store_url, orders(1), 2)
    fill(store_url, orders(5), 5)

    done = fill(store_url, orders(4, 4), number, epoch=epoch, is_start=is_start)

    newest = reader.newest()
    assert done is not None and done.rebuilt == ("orders",)
    assert newest is not None and (newest.snapshot_id, newest.epoch) == (number, epoch)
    assert amounts(reader) == [4, 4]
    assert reader_position(reader, after=2) == "reset"
    assert reader_position(reader, after=6) == "reset"


def test_a_new_epoch_of_the_same_log_goes_on_with_net_changes(
    store_url: str, reader: StoreReader
) -> None:
    fill(store_url, orders(1), 1)

    done = fill(store_url, orders(1, 2), 2, epoch="another")

    assert done is not None and done.rebuilt == ()
    assert reader_position(reader, after=1) == "changes"


def test_tables_of_a_store_of_another_version_are_dropped(
    store_url: str, execute: Callable[[str], None]
) -> None:
    for number in (1, 2):
        fill(store_url, orders(number), number, fingerprints={"orders": str(number)})
    execute("update livemart_store set schema_version = 0")

    for number in (3, 4):
        fill(store_url, orders(number), number)

    assert served_tables(store_url) == ["served_orders_3"]


def test_changes_are_kept_for_the_stated_time_and_at_least_so_many_snapshots(
    store_url: str, reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "KEPT_SNAPSHOTS", 4)
    for number in range(1, 4):
        fill(store_url, orders(number), number, now=START)
    for number in range(4, 9):
        fill(store_url, orders(number), number, now=START + timedelta(hours=23))
    before = [reader_position(reader, after=number) for number in (1, 2, 3)]
    fill(store_url, orders(9), 9, now=START + timedelta(hours=25))
    young = [reader_position(reader, after=number) for number in (3, 4)]

    fill(store_url, orders(10), 10, now=START + timedelta(hours=99))

    newest = [reader_position(reader, after=number) for number in (6, 7)]
    assert (before, young, newest) == (
        ["changes"] * 3,
        ["reset", "changes"],
        ["reset", "changes"],
    )
    page = changes_of(reader, "orders", 7, None, 1_000)
    assert [change.snapshot_id for change in page.changes] == [8, 9, 10]


def test_a_snapshot_that_changes_too_many_rows_is_read_anew_by_followers(
    store_url: str, reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_LOGGED_ROWS", 2)
    fill(store_url, orders(1, 2, 3), 1)
    fill(store_url, orders(4, 5, 3), 2)

    done = fill(store_url, orders(6, 7, 8), 3)
    fill(store_url, orders(6, 7, 9), 4)

    assert done is not None and (done.rebuilt, done.rows_changed) == ((), {"orders": 3})
    assert [reader_position(reader, after) for after in (1, 2, 3)] == ["reset", "reset", "changes"]
    assert amounts(reader) == [6, 7, 9]


def test_a_row_that_counts_for_millions_is_cut_before_it_is_repeated(
    store_url: str,
    reader: StoreReader,
    execute: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill_store(store_url, {"orders": orders(1)}, {}, 1, START)
    execute("update served_orders set _row_count = 500000")
    repeated: list[int] = []

    def noted(times: int) -> Iterator[int]:
        for number in range(times):
            repeated.append(number)
            yield number

    monkeypatch.setattr(snapshot_view, "range", noted, raising=False)
    with reader.snapshot() as view:
        rows = view.rows("orders", tenants=None, limit=3)

    assert len(rows) == 3
    assert repeated == [0, 1, 2]


def test_a_store_of_an_older_form_is_not_read_and_filled_anew(
    store_url: str, reader: StoreReader, execute: Callable[[str], None]
) -> None:
    fill(store_url, orders(1), 1)
    execute("alter table livemart_published drop column checked_at")
    execute("update livemart_store set schema_version = 1")

    with pytest.raises(PublishError, match="STORE_OF_ANOTHER_VERSION"):
        reader.newest()
    done = fill(store_url, orders(1), 1)

    newest = reader.newest()
    assert done is not None and done.rebuilt == ("orders",)
    assert newest is not None and newest.checked_at == newest.published_at


def test_a_store_of_a_newer_program_is_not_read(
    store_url: str, reader: StoreReader, execute: Callable[[str], None]
) -> None:
    fill(store_url, orders(1), 1)
    execute("update livemart_store set schema_version = 99")

    with pytest.raises(PublishError, match="STORE_OF_ANOTHER_VERSION"), reader.snapshot():
        pass


def test_a_disk_that_is_full_ends_the_publication_and_not_a_model(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'serving.db'}"
    tables = {
        1: {name: orders(1, 1) for name in ("a", "b")},
        2: {"a": orders(2, 2), "b": orders(*[2] * 20_000)},
    }
    specs = [
        ServedSpec(name, f"model.test.{name}", f"gold.{name}", ("order_id",)) for name in ("a", "b")
    ]

    def read_change(relation: str, old: int | None, new: int) -> pa.Table:
        before = None if old is None else tables[old][relation[-1]]
        return net_change(before, tables[new][relation[-1]])

    store = Store.open(url)
    assert (
        publish(store, make_snapshot(1, ["a", "b"], START), specs, Versions(read_change))
        is not None
    )
    room = sqlite3.connect(tmp_path / "serving.db").execute("pragma page_count").fetchone()[0] + 30
    event.listen(
        store.engine,
        "checkout",
        lambda driver, *_: driver.execute(f"pragma max_page_count={room}").fetchall(),
    )

    with pytest.raises(PublishError, match="full"):
        publish(store, make_snapshot(2, ["a", "b"], START), specs, Versions(read_change))

    reader = StoreReader.open(url)
    assert (amounts(reader, "a"), amounts(reader, "b")) == ([1, 1], [1, 1])
    reader.close()
    store.close()


def test_a_time_that_no_store_holds_is_told_with_its_column_and_row(
    store_url: str, reader: StoreReader
) -> None:
    """As a model may compute it: Spark's timestamps go on to the year 294247, Python's end before.

    SQLite took it, and then no reader got any row of the model.
    """
    beyond = pa.array([253_402_300_800_000_000], pa.int64()).view(pa.timestamp("us", "UTC"))
    good = pa.table({"id": ["a"], "ends_at": pa.array([0], pa.timestamp("us", "UTC"))})
    bad = pa.table({"id": ["b"], "ends_at": beyond})
    why = "ends_at: +10000-01-01T00:00:00 is outside of the years 1 to 9999, in the row id = b"

    def fill_all(number: int, *terms: pa.Table) -> Publication:
        models = {"orders": orders(*range(1, number + 1)), "terms": pa.concat_tables(terms)}
        done = fill_store(store_url, models, KEYS | {"terms": ("id",)}, number, START)
        assert done is not None
        return done

    fill_all(1, good)
    assert fill_all(2, good, bad).refused == {"terms": why}
    assert amounts(reader) == [1, 2]
    published = reader.newest()
    assert published is not None and published.refused == {"terms": why}
    assert (published.refreshed_at("terms") or (None,))[0] == 2
    newest = make_snapshot(2, (), epoch=published.epoch)
    standing = look_at_store(store_url, newest, START)
    assert standing.state == "current"
    assert (standing.refused, standing.hint is None) == ({"terms": why}, False)
    assert fill_all(3, good).refused == {}
    assert look_at_store(store_url, replace(newest, snapshot_id=3), START).hint is None
