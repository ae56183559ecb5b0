"""Fills a served table with many rows: column by column from Arrow, past SQLAlchemy's own path.

Used where a model is copied whole. A first publication may copy millions of rows; to convert them
value by value takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from livemart.store.column_types import Instant
from livemart.store.served import ServedModel
from livemart.store.value_forms import python_values

_SLICE = 20_000


class KeyNotUniqueError(Exception):
    """Two rows share a key, or a part of a key is NULL or too long: the key does not hold."""


def insert_all(
    connection: Connection,
    table: sa.Table,
    model: ServedModel,
    rows: pa.Table,
    progress: Callable[[], None],
) -> None:
    """Insert rows into the table of a model with key.

    Args:
        connection: in a transaction; after an error it is to be rolled back, to a savepoint at
            least.
        table: of `model`.
        model: its columns are those of `table`, in the same order.
        rows: the model's columns; others are left out.
        progress: called after each slice.

    Raises:
        KeyNotUniqueError: a key is there twice, NULL, or too long for an index.
    """
    insert = _copy if connection.dialect.name == "postgresql" else _insert_many
    names = ", ".join(_quoted(connection, column.name) for column in table.columns)
    target = f"{_quoted(connection, table.name)} ({names})"
    for start in range(0, rows.num_rows, _SLICE):
        part = rows.slice(start, _SLICE)
        columns = [
            _bound(table.c[name].type, part.column(name), connection.dialect)
            for name, _ in model.columns
        ]
        with refusing_keys(model):
            insert(connection, target, columns)
        progress()


@contextmanager
def refusing_keys(model: ServedModel) -> Iterator[None]:
    """Turn a database's error about the key of a row into KeyNotUniqueError."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        # 23: a constraint; 54000: longer than an index takes.
        state = str(getattr(error.orig, "sqlstate", ""))
        if isinstance(error, sa.exc.IntegrityError) or state[:2] == "23" or state == "54000":
            raise KeyNotUniqueError(model.name) from error
        raise


def _insert_many(connection: Connection, target: str, columns: list[list[Any]]) -> None:
    statement = f"insert into {target} values ({', '.join('?' * len(columns))})"
    connection.exec_driver_sql(statement, list(zip(*columns, strict=True)))


def _copy(connection: Connection, target: str, columns: list[list[Any]]) -> None:
    import psycopg

    statement = f"copy {target} from stdin"
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(row)
    except psycopg.Error as error:
        raise sa.exc.OperationalError(statement, None, error) from error


def _quoted(connection: Connection, name: str) -> str:
    return str(connection.dialect.identifier_preparer.quote_identifier(name))


def _bound(kind: sa.types.TypeEngine[Any], column: pa.ChunkedArray, dialect: Dialect) -> list[Any]:
    """Return values as their column's type hands them to the driver."""
    # As the types do it, but for all values at once.
    if isinstance(kind, Instant) and dialect.name == "sqlite":
        column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        return list(column.to_pylist())
    if isinstance(kind, sa.Date) and dialect.name == "sqlite":
        return list(column.cast(pa.string()).to_pylist())
    values = python_values(column)
    convert = kind.dialect_impl(dialect).bind_processor(dialect)
    return values if convert is None else [convert(value) for value in values]
