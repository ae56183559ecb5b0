"""A reader sees one state and creates nothing; database errors are classified by cause."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from livemart.errors import PublishError
from livemart.store.connections import (
    close_engine,
    is_locked,
    is_of_the_statement,
    open_engine,
    reached,
    shown_url,
)
from livemart.store.reader import StoreReader
from tests.store.postgres import Postgres
from tests.store.stores import fill_store


@contextmanager
def opened(path: Path, *, writes: bool = False) -> Iterator[Engine]:
    engine = open_engine(f"sqlite:///{path}", writes=writes, busy_seconds=0.0)
    try:
        yield engine
    finally:
        close_engine(engine)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one row."""
    path = tmp_path / "folder" / "serving.db"
    with opened(path, writes=True) as writer, writer.begin() as connection:
        connection.exec_driver_sql("create table t (n integer primary key)")
        connection.exec_driver_sql("insert into t values (1)")
    return path


def test_files_of_a_store_are_for_their_owner_alone(path: Path) -> None:
    """SQLite gives its log and its index the mode of the file."""
    with opened(path, writes=True) as writer, writer.begin() as connection:
        connection.exec_driver_sql("insert into t values (2)")
        names = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}

    assert names == dict.fromkeys(("serving.db", "serving.db-wal", "serving.db-shm"), 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


# 0.2 s. A process that closes a file loses all its POSIX locks on it (fcntl(2)). SQLite of another
# process then deletes the log that is in use, and neither sees what the other writes later.
def test_a_second_connection_keeps_the_locks_of_the_first(path: Path) -> None:
    another_process = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1]); "
        "connection.execute('insert into t values (?)', [sys.argv[2]]); "
        "connection.commit(); connection.close()"
    )

    def numbers(engine: Engine) -> list[int]:
        with engine.connect() as connection:
            return list(connection.exec_driver_sql("select n from t order by n").scalars())

    with opened(path) as reader:
        assert numbers(reader) == [1]
        with opened(path, writes=True) as writer, writer.begin() as connection:
            connection.exec_driver_sql("insert into t values (2)")
        for number in (3, 4):
            command = [sys.executable, "-I", "-c", another_process, str(path), str(number)]
            subprocess.run(command, check=True)
            assert numbers(reader)[-1] == number


def test_to_connect_waits_for_no_other_writer(path: Path) -> None:
    with opened(path, writes=True) as writer, writer.begin() as connection:
        connection.exec_driver_sql("insert into t values (2)")
        with opened(path, writes=True) as another:
            another.raw_connection().close()


@pytest.mark.parametrize(
    ("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640), (0o600, 0o600)]
)
def test_a_file_that_everybody_could_read_is_taken_back(
    path: Path, before: int, after: int
) -> None:
    """A store of an earlier version; a group that an operator let in stays."""
    path.chmod(before)

    with opened(path, writes=True) as writer, writer.begin() as connection:
        connection.exec_driver_sql("insert into t values (2)")
        modes = {each.stat().st_mode & 0o777 for each in path.parent.iterdir()}

    assert modes == {after}


def test_a_transaction_sees_what_was_there_when_it_began(path: Path) -> None:
    count = sa.text("select count(*) from t")

    with opened(path) as reader, opened(path, writes=True) as writer:
        with reader.begin() as reading:
            assert reading.execute(count).scalar() == 1
            with writer.begin() as writing:
                writing.exec_driver_sql("insert into t values (2)")
            assert reading.execute(count).scalar() == 1
        with reader.begin() as reading:
            assert reading.execute(count).scalar() == 2


def test_a_reader_makes_no_file_and_meets_the_one_that_takes_its_place(path: Path) -> None:
    with opened(path.with_name("none.db")) as reader:
        with pytest.raises(PublishError, match="STORE_UNREACHABLE"), reached(reader):
            reader.connect()
        assert not path.with_name("none.db").exists()
    with opened(path) as reader:
        with reader.begin() as reading:
            reading.exec_driver_sql("select * from t")
        path.unlink()
        sqlite3.connect(path).close()
        with reader.begin() as reading, pytest.raises(sa.exc.OperationalError, match="no such"):
            reading.exec_driver_sql("select * from t")


def test_the_one_lock_is_told_from_every_other_fault(path: Path) -> None:
    with (
        opened(path, writes=True) as one,
        opened(path, writes=True) as other,
        one.begin(),
        pytest.raises(sa.exc.OperationalError) as caught,
    ):
        other.connect().begin()

    assert is_locked(caught.value) and not is_of_the_statement(caught.value)


@pytest.mark.parametrize(
    "statement", ["select * from", "insert into t values (1)", "select * from nothing"]
)
def test_what_a_statement_is_refused_for_is_not_the_store(path: Path, statement: str) -> None:
    with (
        opened(path, writes=True) as writer,
        writer.begin() as connection,
        pytest.raises(sa.exc.DBAPIError) as caught,
    ):
        connection.exec_driver_sql(statement)

    assert is_of_the_statement(caught.value) and not is_locked(caught.value)


def test_a_value_that_no_driver_takes_is_the_statements_and_a_broken_file_the_stores(
    path: Path,
) -> None:
    assert is_of_the_statement(OverflowError("too large")) and not is_of_the_statement(OSError())
    path.write_bytes(b"no database" * 100)
    with (
        opened(path) as reader,
        pytest.raises(PublishError) as caught,
        reached(reader),
        reader.begin() as connection,
    ):
        connection.exec_driver_sql("select * from t")
    assert caught.value.code == "STORE_UNREACHABLE"


def test_values_do_not_depend_on_how_the_database_or_the_role_writes_them(
    postgres: Postgres,
) -> None:
    url = postgres.new_store() + quote(
        " -cDateStyle=German,DMY -cTimeZone=Asia/Tokyo -cextra_float_digits=-15 "
        "-cbytea_output=escape -cIntervalStyle=sql_standard"
    )
    rows = pa.table(
        {
            "id": [1, 2],
            "at": pa.array([datetime.min, datetime.max], pa.timestamp("us", tz="UTC")),
            "day": [date.min, date.max],
            "ratio": [0.1 + 0.2, 1.7976931348623157e308],
            "raw": [b"\\", b"\x00"],
        }
    )

    fill_store(url, {"m": rows}, {"m": ("id",)})
    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        shown = view.rows("m", tenants=None)

    assert shown == rows.to_pylist()


def test_a_password_is_never_shown() -> None:
    engine = open_engine("postgresql+psycopg://till:secret@nowhere/shop")

    assert shown_url(engine) == "postgresql+psycopg://till:***@nowhere/shop"
