"""Killed, late and cut-off publishers: readers see one snapshot whole, nothing is done twice."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier, Event
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy import event
from structlog.testing import capture_logs
from tenacity.wait import wait_fixed

from livemart.errors import PublishError
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import Publication, publish
from livemart.publish.thread import PublisherThread
from livemart.publish.transaction import Publishing
from livemart.state.snapshots import Snapshot
from livemart.store.connections import is_of_the_statement
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.ports import silent_port
from tests.publish.kill_publisher import ORDERS, as_of, publish_number, publish_until
from tests.store.postgres import Postgres, running_postgres
from tests.store.served_tables import Versions
from tests.store.stores import (
    changes_of,
    fill_store,
    make_snapshot,
    net_change,
    reference_tables,
    stored_rows,
)
from tests.waits import PATIENCE_S, wait_until

SPEC = ServedSpec("numbers", "model.test.numbers", "gold.numbers", ("number",))
KILLS = [
    (1, "publish.progress:2"),
    (1, "publish.in_transaction"),
    (2, "publish.before"),
    (2, "publish.progress:2"),
    (2, "publish.in_transaction"),
    (2, "publish.after"),
    (3, "publish.progress:2"),
    (3, "publish.in_transaction"),
]


# Publishers are forked from a process that has imported everything, which takes most of their time.
_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.publish.kill_publisher"])


def run_publisher(url: str, number: int, failpoint: str) -> int | None:
    """Publish in another process; return its exit code."""
    process = _PROCESSES.Process(target=publish_until, args=(failpoint, url, number))
    process.start()
    process.join(PATIENCE_S)
    return process.exitcode


def assert_shows(url: str, reader: StoreReader, number: int) -> None:
    """Check every row of every model against the oracle of that snapshot."""
    newest = reader.newest()
    assert newest is not None and (newest.snapshot_id, newest.as_of) == (number, as_of(number))
    for name, table in reference_tables(ORDERS, as_of(number)).items():
        stored = stored_rows(url, f"gold.{name}", table.schema).to_pylist()
        assert sorted(map(str, stored)) == sorted(map(str, table.to_pylist())), name


@pytest.mark.gate_takes_every(5)
@pytest.mark.parametrize(("number", "failpoint"), KILLS)
def test_a_publisher_killed_on_the_way_leaves_one_snapshot_whole(
    store_url: str, reader: StoreReader, number: int, failpoint: str
) -> None:
    """Snapshot 1 fills an empty store, 2 is a change, 3 rebuilds a model as well."""
    for before in range(1, number):
        publish_number(store_url, before)

    killed = run_publisher(store_url, number, failpoint)

    assert killed == -signal.SIGKILL
    is_published = failpoint == "publish.after"
    if number > 1 or is_published:
        assert_shows(store_url, reader, number if is_published else number - 1)
    else:
        assert reader.newest() is None
    again = publish_number(store_url, number)
    assert (again is None) == is_published
    assert_shows(store_url, reader, number)
    if number == 2:
        page = changes_of(reader, "order_arrivals", 1, None, 1_000)
        kept = [change.row["arrival_id"] for change in page.changes]
        assert page.kind == "changes" and len(kept) == len(set(kept)) > 0


def numbers(snapshot_id: int) -> pa.Table:
    """Return the numbers up to a snapshot's, each with the snapshot beside it."""
    ids = list(range(snapshot_id + 1))
    return pa.table({"number": ids, "seen_at": [snapshot_id] * len(ids)})


def publish_to(store: Store, snapshot_id: int) -> Publication | None:
    return publish(
        store,
        make_snapshot(snapshot_id, ["numbers", "copies"]),
        [SPEC, ServedSpec("copies", "model.test.copies", "gold.copies", ("number",))],
        Versions(
            lambda _, old, new: net_change(None if old is None else numbers(old), numbers(new))
        ),
    )


def test_two_publishers_never_interleave(
    store_url: str, reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.store.connections._BUSY_SECONDS", PATIENCE_S)
    barrier = Barrier(3)

    def run(numbers_: range) -> int:
        store = Store.open(store_url)
        barrier.wait(PATIENCE_S)
        done = [publish_to(store, number) for number in numbers_]
        store.close()
        return sum(each is not None for each in done)

    with ThreadPoolExecutor(3) as pool:
        done = sum(pool.map(run, [range(1, 13)] * 3))

    assert done == 12
    page = changes_of(reader, "numbers", 1, None, 10_000)
    assert page.kind == "changes"
    ops = [(c.snapshot_id, c.op, c.row["number"]) for c in page.changes]
    expected = [
        (at, "insert" if number == at else "update", number)
        for at in range(2, 13)
        for number in range(at + 1)
    ]
    assert sorted(ops) == sorted(expected)


def test_a_publisher_that_is_always_too_late_gives_up_and_says_so(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = Store.open(store_url), Store.open(store_url)
    publish_to(mine, 1)
    turns = iter(range(2, 100))

    def overtaken(name: str) -> None:
        if name == "publish.before":
            publish_to(other, next(turns))

    how = Publishing(step=overtaken)
    with pytest.raises(PublishError, match="STORE_CONTENDED"):
        publish(
            mine,
            make_snapshot(200, ["numbers"]),
            [SPEC],
            Versions(lambda _, old, new: net_change(None, numbers(3))),
            how,
        )
    mine.close()
    other.close()


def test_readers_see_one_snapshot_however_fast_they_come(
    store_url: str, reader: StoreReader
) -> None:
    store = Store.open(store_url)
    publish_to(store, 1)
    is_over = Event()
    found: list[list[int]] = [[] for _ in range(4)]

    def read(seen: list[int]) -> None:
        while not is_over.is_set():
            with reader.snapshot() as view:
                number = view.published.snapshot_id
                rows = view.rows("numbers", tenants=None)
                again = view.rows("copies", tenants=None, order_by=["seen_at"])
            assert [row["number"] for row in rows] == list(range(number + 1))
            assert {row["seen_at"] for row in rows + again} == {number}
            assert len(again) == len(rows)
            seen.append(number)

    def is_seen() -> bool:
        return all(len(set(seen)) > 2 for seen in found)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, seen) for seen in found]
        try:
            ends_at = monotonic() + PATIENCE_S
            for number in count(2):
                publish_to(store, number)
                is_late = monotonic() > ends_at or any(each.done() for each in readers)
                if (number >= 21 and is_seen()) or is_late:
                    break
        finally:
            is_over.set()
        for each in readers:
            each.result()
    store.close()

    assert all(seen == sorted(seen) for seen in found)
    assert is_seen()


@pytest.fixture
def own_postgres(postgres_binaries: Path) -> Iterator[Postgres]:
    """A server for this test alone, which it may stop."""
    with running_postgres(postgres_binaries) as server:
        yield server


def test_a_database_that_is_down_delays_publication_and_stops_nothing(
    own_postgres: Postgres,
) -> None:
    url = own_postgres.new_store()
    store, reader = Store.open(url), StoreReader.open(url)
    attempted = Event()

    def bring(snapshot: Snapshot, is_start: bool) -> Publication | None:
        try:
            return publish_to(store, snapshot.snapshot_id)
        except PublishError:
            attempted.set()
            raise

    thread = PublisherThread(bring, lambda *_: True, wait=wait_fixed(0.2))
    with capture_logs() as logs:
        thread.start(make_snapshot(1, []))
        # Said when the publisher is through with it: a database that stops between its commit and
        # its answer is asked for it again.
        wait_until(lambda: "snapshot_served" in [each["event"] for each in logs])
        newest = reader.newest()
        own_postgres.stop()
        thread.offer(make_snapshot(2, []))
        assert attempted.wait(PATIENCE_S)
        thread.offer(make_snapshot(3, []))
        with pytest.raises(PublishError, match="STORE_UNREACHABLE"):
            reader.newest()
        own_postgres.start()
        is_published = thread.close(timedelta(seconds=PATIENCE_S))

    events = [each["event"] for each in logs if each["log_level"] != "debug"]
    after = reader.newest()
    reader.close()
    store.close()
    assert newest is not None and newest.snapshot_id == 1
    assert is_published and after is not None and after.snapshot_id == 3
    assert events == ["snapshot_served", "store_unreachable", "store_back"]


def test_a_disk_that_is_full_delays_the_same_snapshot_and_readers_keep_the_one_before(
    tmp_path: Path,
) -> None:
    """SQLite says SQLITE_FULL of a file that may have no more pages, as of a disk without room."""
    url = f"sqlite:///{tmp_path / 'serving.db'}"
    store, reader = Store.open(url), StoreReader.open(url)
    pages, published = [1 << 30], list[int]()
    event.listen(
        store.engine,
        "checkout",
        lambda driver, *_: driver.execute(f"pragma max_page_count={pages[0]}").fetchall(),
    )
    full = Event()

    def rows(version: int) -> pa.Table:
        return pa.table({"number": range(20_000 if version == 2 else 1)})

    def bring(snapshot: Snapshot, is_start: bool) -> Publication | None:
        published.append(snapshot.snapshot_id)
        try:
            return publish(
                store,
                snapshot,
                [SPEC],
                Versions(
                    lambda _, old, new: net_change(None if old is None else rows(old), rows(new))
                ),
            )
        except PublishError as error:
            assert "full" in str(error)
            full.set()
            raise

    thread = PublisherThread(bring, lambda *_: True, wait=wait_fixed(0.2))
    with capture_logs() as logs:
        thread.start(make_snapshot(1, ["numbers"]))
        wait_until(lambda: "snapshot_served" in [each["event"] for each in logs])
        # No room for a page more than there is.
        pages[0] = 1
        thread.offer(make_snapshot(2, ["numbers"]))
        assert full.wait(PATIENCE_S)
        meanwhile = reader.newest()
        pages[0] = 1 << 30
        is_published = thread.close(timedelta(seconds=PATIENCE_S))

    after = reader.newest()
    reader.close()
    store.close()
    assert meanwhile is not None and meanwhile.snapshot_id == 1
    assert is_published and after is not None and after.snapshot_id == 2
    assert published[0] == 1 and set(published[1:]) == {2} and len(published) > 2
    events = [each["event"] for each in logs if each["log_level"] != "debug"]
    assert events == ["snapshot_served", "store_unreachable", "store_back"]


_REFUSALS = {
    "a full disk": (
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin raise exception 'No space left on device' using errcode = 'disk_full'; end $$;"
        "create trigger refuses before insert on livemart_published execute function refuse()",
        "drop trigger refuses on livemart_published",
    ),
    "a server that takes reads alone": (
        "alter database postgres set default_transaction_read_only = on;"
        # Sessions that are open are those of before.
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
        "and backend_type = 'client backend'",
        "set default_transaction_read_only = off;"
        "alter database postgres reset default_transaction_read_only",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", _REFUSALS)
def test_a_postgresql_that_takes_no_writes_delays_the_same_snapshot(
    own_postgres: Postgres, kind: str
) -> None:
    """`disk_full` is the state that PostgreSQL itself gives a write that has no room (53100)."""
    refuse, take_again = _REFUSALS[kind]
    url = own_postgres.new_store()
    schema = url.rpartition("search_path%3D")[2]
    store, reader = Store.open(url), StoreReader.open(url)
    published, refused = list[int](), Event()

    def bring(snapshot: Snapshot, is_start: bool) -> Publication | None:
        published.append(snapshot.snapshot_id)
        try:
            return publish_to(store, snapshot.snapshot_id)
        except PublishError:
            refused.set()
            raise

    thread = PublisherThread(bring, lambda *_: True, wait=wait_fixed(0.2))
    with capture_logs() as logs, own_postgres.connect() as admin:
        admin.execute(f"set search_path = {schema}".encode())
        thread.start(make_snapshot(1, ["numbers"]))
        wait_until(lambda: "snapshot_served" in [each["event"] for each in logs])
        admin.execute(refuse.encode())
        thread.offer(make_snapshot(2, ["numbers"]))
        assert refused.wait(PATIENCE_S)
        meanwhile = reader.newest()
        admin.execute(take_again.encode())
        is_published = thread.close(timedelta(seconds=PATIENCE_S))

    after = reader.newest()
    reader.close()
    store.close()
    assert meanwhile is not None and meanwhile.snapshot_id == 1
    assert is_published and after is not None and after.snapshot_id == 2
    assert published[0] == 1 and set(published[1:]) == {2} and len(published) > 2
    events = [each["event"] for each in logs if each["log_level"] != "debug"]
    assert events == ["snapshot_served", "store_unreachable", "store_back"]


def test_a_right_that_is_taken_back_is_a_store_that_cannot_be_reached(
    postgres: Postgres,
) -> None:
    url = postgres.new_store()
    fill_store(url, reference_tables([]))
    owner = Store.open(url)
    with owner.begin() as connection:
        schema: str = connection.exec_driver_sql("select current_schema()").scalar_one()
        connection.exec_driver_sql("create role looker login")
        connection.exec_driver_sql(f"grant usage on schema {schema} to looker")
        connection.exec_driver_sql(f"grant select on all tables in schema {schema} to looker")
    reader = StoreReader.open(url.replace("//postgres@", "//looker@"))
    before = reader.newest()

    with owner.begin() as connection:
        connection.exec_driver_sql("revoke select on livemart_published from looker")
    with pytest.raises(PublishError, match="STORE_UNREACHABLE") as raised:
        reader.newest()

    reader.close()
    owner.close()
    assert before is not None and before.snapshot_id == 1
    assert "permission denied for table livemart_published" in raised.value.message
    assert "grant" in raised.value.hint


def test_a_file_that_somebody_else_holds_locked_is_unreachable_for_publishers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.store.connections._BUSY_SECONDS", 0.1)
    url = f"sqlite:///{tmp_path}/serving.db"
    store, reader = Store.open(url), StoreReader.open(url)
    publish_to(store, 1)
    other = sqlite3.connect(tmp_path / "serving.db", isolation_level=None)
    other.execute("begin immediate")

    with pytest.raises(PublishError, match="STORE_UNREACHABLE"):
        publish_to(store, 2)
    newest = reader.newest()
    other.close()

    assert newest is not None and newest.snapshot_id == 1
    assert publish_to(store, 2) is not None
    store.close()
    reader.close()


def test_a_file_that_others_open_or_leave_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter(range(2))

    class Contended(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and next(refusals, None) is not None:
                # SQLite's immediate error, whatever its busy timeout is.
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            return super().execute(sql, *arguments)

    connect = partial(sqlite3.connect, factory=Contended)
    monkeypatch.setattr("livemart.store.connections.sqlite3.connect", connect)
    store = Store.open(f"sqlite:///{tmp_path}/serving.db")

    assert publish_to(store, 1) is not None
    assert next(refusals, None) is None
    store.close()


def test_a_folder_that_cannot_be_written_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    store = Store.open(f"sqlite:///{tmp_path}/taken/serving.db")

    with pytest.raises(PublishError, match="STORE_UNREACHABLE"):
        publish_to(store, 1)


def test_a_file_that_is_no_database_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "serving.db").write_bytes(b"not a database" * 1_000)
    store = Store.open(f"sqlite:///{tmp_path}/serving.db")
    reader = StoreReader.open(f"sqlite:///{tmp_path}/serving.db")

    with pytest.raises(PublishError, match=r"STORE_UNREACHABLE.*not a database"):
        publish_to(store, 1)
    with pytest.raises(PublishError, match=r"STORE_UNREACHABLE.*not a database"):
        reader.newest()
    store.close()
    reader.close()


def test_a_password_is_not_part_of_a_message() -> None:
    with silent_port() as port:
        reader = StoreReader.open(f"postgresql+psycopg://joe:s3cret@127.0.0.1:{port}/none")

        with pytest.raises(PublishError, match="STORE_UNREACHABLE") as raised:
            reader.newest()

    assert "s3cret" not in str(raised.value)
    reader.close()


@pytest.mark.parametrize(
    ("code", "is_the_statements"),
    [
        ("54011", True),
        ("22003", True),
        ("42601", True),
        ("53100", False),
        ("40001", False),
        ("57014", False),
        (sqlite3.SQLITE_ERROR, True),
        (sqlite3.SQLITE_TOOBIG, True),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, True),
        (sqlite3.SQLITE_BUSY, False),
        (sqlite3.SQLITE_FULL, False),
        (sqlite3.SQLITE_IOERR, False),
    ],
)
def test_a_refused_statement_is_told_from_a_store_that_takes_none(
    code: str | int, is_the_statements: bool
) -> None:
    class Cause(Exception):
        pass

    cause = Cause("no")
    setattr(cause, "sqlstate" if isinstance(code, str) else "sqlite_errorcode", code)
    error = sa.exc.OperationalError("select 1", {}, cause)

    assert is_of_the_statement(error) is is_the_statements
    error.connection_invalidated = True
    assert not is_of_the_statement(error)
    assert is_of_the_statement(OverflowError()) and not is_of_the_statement(MemoryError())
