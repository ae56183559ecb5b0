"""The serving store: a SQL database that shows its readers one published snapshot at a time.

SQLite in WAL mode or PostgreSQL. Everything in it can be made anew from the warehouse, so a store
of another form, or one that lost something, is simply filled again.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine

from livemart.errors import PublishError
from livemart.publish.served import Published, ServedModel
from livemart.publish.store_schema import (
    METADATA,
    MODELS,
    PUBLISHED,
    ROW_COUNT,
    SCHEMA_VERSION,
    STORE,
    Layout,
    bag_column,
    served_table,
)
from livemart.publish.store_types import compare_decimals

_SQLITE = "sqlite:///"
_BUSY_SECONDS = 10
_CONNECT_SECONDS = 5
_HINTS = {
    "postgresql": "start the database, or name another one with --store",
    "sqlite": "look at the file and its folder; a broken file may be deleted (tokens are in it)",
}
UNDEFINED_TABLE = "42P01"
# Only ever seen by ourselves: the ASCII of `livemart`.
_ADVISORY_LOCK = 0x6C6976656D617274


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A served model as the store holds it: its form, and which version of its table it is.

    `declared_key` is what the project says; `row_key` is empty if that did not hold.
    """

    layout: Layout
    relation: str
    table_version: int
    table_id: str
    fingerprint: str
    declared_key: tuple[str, ...]
    event_time: str | None
    row_count: int

    def to_row(self) -> dict[str, Any]:
        """Return the row of `livemart_models`."""
        model = self.layout.model
        return {
            "model": model.name,
            "relation": self.relation,
            "table_version": self.table_version,
            "table_id": self.table_id,
            "fingerprint": self.fingerprint,
            "columns": [list(column) for column in model.columns],
            "row_key": list(model.row_key),
            "declared_key": list(self.declared_key),
            "tenant_column": model.tenant_column,
            "event_time": self.event_time,
            "time_column": model.time_column,
            "table_name": self.layout.table_name,
            "row_count": self.row_count,
        }


@dataclass(frozen=True, slots=True)
class StoreState:
    """What a publication starts from. `store_id` is None if the store is not one of ours yet."""

    store_id: str | None = None
    published: Published | None = None
    models: Mapping[str, StoredModel] = field(default_factory=dict)
    table_names: frozenset[str] = frozenset()

    @property
    def identity(self) -> tuple[str | None, Published | None]:
        """What another publication in between would have changed."""
        return self.store_id, self.published


class Store:
    """The store as its one publisher sees it. Safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str) -> Store:
        """Return the store at `url`; nothing is connected or made yet."""
        return cls(open_engine(url, writes=True))

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Yield a connection in a transaction that shuts every other publisher out.

        Raises:
            PublishError: STORE_UNREACHABLE.
        """
        with reached(self.engine), self.engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            yield connection

    def read_state(self) -> StoreState:
        """Return what the store holds. Raises PublishError STORE_UNREACHABLE."""
        with self.begin() as connection:
            return read_state(connection)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_engine(url: str, *, writes: bool = False) -> Engine:
    """Return an engine whose transactions see one state of the store from begin to end.

    Args:
        url: `sqlite:///path` or SQLAlchemy's URL of a PostgreSQL database.
        writes: take SQLite's write lock when a transaction begins, and make the file and its
            folder if there is none; without it nobody is ever waited for.
    """
    if url.startswith(_SQLITE):
        return _open_sqlite(Path(url.removeprefix(_SQLITE)), writes)
    options = "-c timezone=UTC"
    if not writes:
        options += " -c default_transaction_read_only=on"
    return sa.create_engine(
        url,
        pool_size=8,
        max_overflow=24,
        pool_timeout=_BUSY_SECONDS,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
        connect_args={"connect_timeout": _CONNECT_SECONDS, "options": options},
    )


def _open_sqlite(path: Path, writes: bool) -> Engine:
    def connect() -> sqlite3.Connection:
        if writes:
            path.parent.mkdir(parents=True, exist_ok=True)
        mode = "rwc" if writes else "rw"
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        if writes:
            connection.execute("pragma journal_mode=wal")
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
            raise sa.exc.DisconnectionError(f"{path} is another file by now")

    return engine


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def reached(engine: Engine) -> Iterator[None]:
    """Turn what a database says when it cannot be used into PublishError STORE_UNREACHABLE."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError, OSError) as error:
        if isinstance(error, sa.exc.DBAPIError) and not _is_of_the_store(error):
            raise
        cause = getattr(error, "orig", None) or error
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise PublishError(
            "STORE_UNREACHABLE",
            f"{shown_url(engine)}: {lines[0]}",
            hint=_HINTS.get(engine.dialect.name, _HINTS["postgresql"]),
        ) from error


def _is_of_the_store(error: sa.exc.DBAPIError) -> bool:
    """Return whether an error is about the store and not about what was asked of it."""
    # DatabaseError itself is what SQLite says of a file that is broken or none of its own.
    if isinstance(error, sa.exc.OperationalError) or type(error) is sa.exc.DatabaseError:
        return True
    # A reader stayed so long that a table of its snapshot was dropped.
    is_dropped = getattr(error.orig, "sqlstate", None) == UNDEFINED_TABLE
    return is_dropped or bool(error.connection_invalidated)


def shown_url(engine: Engine) -> str:
    """Return where an engine's store is, without the password."""
    return engine.url.render_as_string(hide_password=True)


def read_state(connection: Connection) -> StoreState:
    """Return what the store holds, in the transaction under way."""
    names = frozenset(sa.inspect(connection).get_table_names())
    if not names.issuperset(METADATA.tables):
        return StoreState(table_names=names)
    version = connection.execute(sa.select(STORE)).first()
    if version is None or version.schema_version != SCHEMA_VERSION:
        return StoreState(table_names=names)
    models = {
        row.model: stored_model(row)
        for row in connection.execute(sa.select(MODELS).order_by(MODELS.c.model))
    }
    return StoreState(version.store_id, newest_published(connection), models, names)


def newest_published(connection: Connection) -> Published | None:
    """Return the row that readers see, None if nothing was published."""
    query = sa.select(PUBLISHED).order_by(PUBLISHED.c.snapshot_id.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else Published(**row._mapping)


def stored_model(row: sa.Row[Any]) -> StoredModel:
    """Return a row of `livemart_models`."""
    model = ServedModel(
        name=row.model,
        columns=tuple((name, kind) for name, kind in row.columns),
        row_key=tuple(row.row_key),
        tenant_column=row.tenant_column,
        time_column=row.time_column,
    )
    return StoredModel(
        layout=Layout(row.table_name, model),
        relation=row.relation,
        table_version=row.table_version,
        table_id=row.table_id,
        fingerprint=row.fingerprint,
        declared_key=tuple(row.declared_key),
        event_time=row.event_time,
        row_count=row.row_count,
    )


def make_tables(connection: Connection) -> str:
    """Make the store's own tables anew, empty, and return the new store's id.

    Tables of others in the same database stay; those that were ours are dropped.
    """
    METADATA.drop_all(connection)
    METADATA.create_all(connection)
    store_id = secrets.token_hex(8)
    connection.execute(sa.insert(STORE).values(schema_version=SCHEMA_VERSION, store_id=store_id))
    return store_id


def count_rows(connection: Connection, stored: StoredModel) -> int:
    """Return the number of rows that a served table holds, repeats included."""
    table = served_table(stored.layout)
    model = stored.layout.model
    rows: sa.ColumnElement[Any] = sa.func.count()
    if not model.row_key:
        rows = sa.func.coalesce(sa.func.sum(table.c[bag_column(model, ROW_COUNT)]), 0)
    return int(connection.execute(sa.select(rows).select_from(table)).scalar_one())
