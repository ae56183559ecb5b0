"""Connects to the serving store: transactions that see one state of it, in either database.

Used by publisher, readers and tokens. A reader takes no lock; a writer on SQLite takes the one lock
when its transaction begins.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, ExceptionContext, make_url
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from livemart.errors import PublishError, first_lines
from livemart.store.column_types import compare_decimals

_SQLITE = "sqlite:///"
_BUSY_SECONDS = 10
_BUSY_STEP_SECONDS = 0.01
_CONNECT_SECONDS = 5
# A reader that holds up others for longer is refused; a writer may copy a large model.
_READ_SECONDS = 30
_HINTS = {
    "postgresql": "start the database, or name another one with --store",
    "sqlite": "check the file and its folder; you may delete a broken file, but it contains the "
    "tokens",
}
# PostgreSQL's classes: not supported, data, constraint, syntax and names, limits of the program.
_STATES_OF_STATEMENTS = frozenset({"0A", "22", "23", "42", "54"})
_CODES_OF_STATEMENTS = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_RANGE,
    }
)
UNDEFINED_TABLE = "42P01"
UNDEFINED_COLUMN = "42703"
_NOT_ALLOWED = "42501"
# A standby, or a primary that became one: another host may take writes. Then: it is shut down.
_STATES_OF_ANOTHER_SERVER = frozenset({"25006", "57P01", "57P02", "57P03"})
_GRANT = "let the database user read this schema (to serve) or own it (to fill it), with `grant`"


def open_engine(url: str, *, writes: bool = False, busy_seconds: float | None = None) -> Engine:
    """Return an engine whose transactions see one state of the store from begin to end.

    Args:
        url: `sqlite:///path` or SQLAlchemy's URL of a PostgreSQL database.
        writes: take SQLite's write lock when a transaction begins, and make the file and its
            folder if there is none; without it a transaction never waits.
        busy_seconds: how long SQLite waits for that lock, 10 if not given.
    """
    if url.startswith(_SQLITE):
        busy_seconds = _BUSY_SECONDS if busy_seconds is None else busy_seconds
        return _open_sqlite(Path(url.removeprefix(_SQLITE)).absolute(), writes, busy_seconds)
    return _open_postgresql(make_url(url), writes)


# However a database or a role is set: the driver reads times of this form alone, and all digits of
# a double are sent.
_FORMS_OF_VALUES = ("-c timezone=UTC", "-c DateStyle=ISO", "-c extra_float_digits=3")


def _open_postgresql(address: URL, writes: bool) -> Engine:
    # Imported late: a server on SQLite needs no driver of PostgreSQL.
    from livemart.store.sessions import SERVER_OPTIONS, TCP_PARAMETERS, Sessions

    # Options of the URL stay: a separate schema is `?options=-csearch_path%3Dserving`.
    given = address.normalized_query
    options = [SERVER_OPTIONS, *given.get("options", ()), *_FORMS_OF_VALUES]
    parameters: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, **TCP_PARAMETERS}
    if writes:
        # Takes the present primary of several hosts.
        parameters["target_session_attrs"] = "read-write"
    else:
        options.insert(0, f"-c statement_timeout={_READ_SECONDS}s")
        options.append("-c default_transaction_read_only=on")
    parameters = {name: value for name, value in parameters.items() if name not in given}
    engine = sa.create_engine(
        address,
        pool_size=8,
        max_overflow=24,
        pool_timeout=_BUSY_SECONDS,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
        connect_args={
            "options": " ".join(options),
            **parameters,
        },
    )
    sessions = Sessions()

    @event.listens_for(engine, "do_connect")
    def _open(dialect: Any, record: Any, words: Any, parameters: dict[str, Any]) -> Any:
        return sessions.open(parameters)

    @event.listens_for(engine, "handle_error")
    def _leave_server(context: ExceptionContext) -> None:
        state = getattr(context.original_exception, "sqlstate", None)
        if state in _STATES_OF_ANOTHER_SERVER:
            context.is_disconnect = True

    return engine


def _use_write_ahead_log(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Let readers see the last committed state while another process writes.

    For the lock that this takes on a file that others open or leave, SQLite itself does not wait.
    """
    patiently = Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(busy_seconds),
        wait=wait_fixed(_BUSY_STEP_SECONDS),
        reraise=True,
    )
    try:
        # Read to its end: while a statement is open, no function can be added to the connection.
        patiently(lambda: connection.execute("pragma journal_mode=wal").fetchall())
    except sqlite3.Error:
        connection.close()
        raise


def _open_sqlite(path: Path, writes: bool, busy_seconds: float) -> Engine:
    def connect() -> sqlite3.Connection:
        is_new = writes and _make_private(path)
        mode = "rwc" if writes else "rw"
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        if is_new:
            # Before anything is written. In any other file it would wait for the write lock.
            connection.execute("pragma auto_vacuum=incremental")
        if writes:
            _use_write_ahead_log(connection, busy_seconds)
        connection.execute("pragma synchronous=normal")
        connection.execute(f"pragma journal_size_limit={64 * 1024 * 1024}")
        connection.create_collation("livemart_decimal", compare_decimals)
        return connection

    engine = sa.create_engine(
        URL.create("sqlite", database=str(path)),
        creator=connect,
        poolclass=sa.QueuePool,
        pool_size=16,
        max_overflow=48,
        pool_timeout=_BUSY_SECONDS,
    )

    # The driver begins a transaction with the first write only: reads would not belong together.
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("begin immediate" if writes else "begin")

    @event.listens_for(engine, "connect")
    def _remember_file(connection: Any, record: Any) -> None:
        record.info["file"] = _file_id(path)

    # A file that was deleted or replaced lives on for those who hold it open.
    @event.listens_for(engine, "checkout")
    def _refuse_lost_file(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["file"] != _file_id(path):
            raise sa.exc.DisconnectionError(f"{path} was replaced by another file")

    return engine


def _make_private(path: Path) -> bool:
    """Make the file and its folder for their owner alone, and take a file away from all others.

    Returns True if the file is new.

    SQLite gives its log and its index the mode of the file. A group that an operator gave a file to
    keeps it.
    """
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # A file that is there is not opened: closing it ends all locks of this process on it. Then
        # SQLite of another process would delete the log that is in use here.
        is_new = False
        with suppress(FileExistsError):
            os.close(os.open(path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            is_new = True
        for file in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
            with suppress(FileNotFoundError):
                if file.stat().st_mode & stat.S_IRWXO:
                    file.chmod(0o600)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    return is_new


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def close_engine(engine: Engine) -> None:
    """Close all connections; one that is in use, as soon as it is given back."""
    # The pool that an engine has from then on hears of it, too.
    event.listen(engine, "checkin", lambda _, record: record.invalidate())  # codespell:ignore
    engine.dispose()


@contextmanager
def reached(engine: Engine) -> Iterator[None]:
    """Turn the error of an unusable database into PublishError STORE_UNREACHABLE."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        if isinstance(error, sa.exc.DBAPIError) and not _is_of_the_store(error):
            raise
        cause = getattr(error, "orig", None) or error
        is_refused = getattr(cause, "sqlstate", None) == _NOT_ALLOWED
        hint = _HINTS.get(engine.dialect.name, _HINTS["postgresql"])
        raise PublishError(
            "STORE_UNREACHABLE",
            f"{shown_url(engine)}: {first_lines(cause)}",
            hint=_GRANT if is_refused else hint,
        ) from error


def _is_of_the_store(error: sa.exc.DBAPIError) -> bool:
    """Return whether an error is about the store and not about the query."""
    # SQLite raises DatabaseError itself for a file that is broken or no database.
    if isinstance(error, sa.exc.OperationalError) or type(error) is sa.exc.DatabaseError:
        return True
    # A reader stayed so long that a table of its snapshot was dropped, or a grant was taken back.
    is_known = getattr(error.orig, "sqlstate", None) in (UNDEFINED_TABLE, _NOT_ALLOWED)
    return is_known or bool(error.connection_invalidated)


def is_of_the_statement(error: Exception) -> bool:
    """Return whether a database refuses a statement or its values, and would take others.

    It refuses values that are too wide, too long or of an unknown kind. A lock, a full disk or a
    broken connection is no fault of the statement.
    """
    earlier = error.__context__
    if isinstance(earlier, sa.exc.DBAPIError) and not is_of_the_statement(earlier):
        # A later error, such as one of a lost savepoint, is not the cause.
        return False
    if not isinstance(error, sa.exc.SQLAlchemyError):
        # A driver or a type of ours refused a value before the database saw it.
        return isinstance(
            error, ValueError | TypeError | OverflowError | pa.ArrowInvalid | pa.ArrowTypeError
        )
    if not isinstance(error, sa.exc.DBAPIError):
        return isinstance(error, sa.exc.StatementError | sa.exc.CompileError)
    if error.connection_invalidated:
        return False
    if (state := getattr(error.orig, "sqlstate", None)) is not None:
        return str(state)[:2] in _STATES_OF_STATEMENTS and state != _NOT_ALLOWED
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _CODES_OF_STATEMENTS
    return isinstance(error, sa.exc.DataError | sa.exc.ProgrammingError | sa.exc.InterfaceError)


def is_made(engine: Engine) -> bool:
    """Return whether the store's file exists; True for a database that is no file."""
    return engine.dialect.name != "sqlite" or Path(engine.url.database or "").exists()


def shown_url(engine: Engine) -> str:
    """Return where an engine's store is, without the password."""
    return engine.url.render_as_string(hide_password=True)


def is_locked(error: sa.exc.DBAPIError) -> bool:
    """Return whether another process held SQLite's write lock while the caller waited."""
    return _is_busy(error.orig)


def _is_busy(error: BaseException | None) -> bool:
    # The low byte is the error, the others its reason.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def optional_content(connection: Connection, query: sa.Select[Any]) -> Any:
    """Return the value that a query finds; None if it finds none, or the store lacks its table."""
    try:
        # A failed statement would end the transaction of PostgreSQL with it.
        with connection.begin_nested():
            return connection.execute(query).scalar()
    except sa.exc.DBAPIError:
        return None
