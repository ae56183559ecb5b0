"""Fills a served table with many rows: column by column from Arrow, past SQLAlchemy's own path.

Used where a model is copied whole. A first publication may copy millions of rows; to convert them
value by value takes minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.column_types import write_json
from livemart.store.served import ServedModel
from livemart.store.value_forms import TIMESTAMPS, decimal_size, python_values

_SLICE = 20_000


class RefusedRowsError(Exception):
    """The database refuses rows because of the table's key."""


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
        RefusedRowsError: a key is there twice, NULL, or too long for an index.
    """
    insert = _copy if connection.dialect.name == "postgresql" else _insert_many
    for start in range(0, rows.num_rows, _SLICE):
        insert(connection, table, model, rows.slice(start, _SLICE))
        progress()


def is_refusal(error: Exception) -> bool:
    """Return whether a database's error is about the key of a row."""
    cause = getattr(error, "orig", None) or error
    # 23: a constraint; 54000: longer than an index takes.
    state = str(getattr(cause, "sqlstate", ""))
    return isinstance(error, sa.exc.IntegrityError) or state[:2] == "23" or state == "54000"


def _insert_many(
    connection: Connection, table: sa.Table, model: ServedModel, rows: pa.Table
) -> None:
    columns = [_for_sqlite(kind, rows.column(name)) for name, kind in model.columns]
    names, marks = _names(connection, table), ", ".join("?" * len(columns))
    statement = f"insert into {_quoted(connection, table.name)} ({names}) values ({marks})"
    try:
        connection.exec_driver_sql(statement, list(zip(*columns, strict=True)))
    except sa.exc.DBAPIError as error:
        if is_refusal(error):
            raise RefusedRowsError(model.name) from error
        raise


def _copy(connection: Connection, table: sa.Table, model: ServedModel, rows: pa.Table) -> None:
    import psycopg

    statement = f"copy {_quoted(connection, table.name)} ({_names(connection, table)}) from stdin"
    columns = [_for_postgresql(kind, rows.column(name)) for name, kind in model.columns]
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(row)
    except psycopg.Error as error:
        if is_refusal(error):
            raise RefusedRowsError(model.name) from error
        raise sa.exc.OperationalError(statement, None, error) from error


def _names(connection: Connection, table: sa.Table) -> str:
    return ", ".join(_quoted(connection, column.name) for column in table.columns)


def _quoted(connection: Connection, name: str) -> str:
    return str(connection.dialect.identifier_preparer.quote_identifier(name))


def _for_sqlite(kind: str, column: pa.ChunkedArray) -> list[Any]:
    """Return the values as `store.column_types` writes them there."""
    if kind in TIMESTAMPS:
        zone = column.type.tz
        micros: list[Any] = column.cast(pa.timestamp("us", tz=zone)).cast(pa.int64()).to_pylist()
        return micros
    values = python_values(column)
    convert = _TO_SQLITE.get("decimal" if decimal_size(kind) else kind)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _for_postgresql(kind: str, column: pa.ChunkedArray) -> list[Any]:
    values = python_values(column)
    if kind == "json":
        return [None if value is None else write_json(value) for value in values]
    if kind == "string":
        return [value and value.replace("\0", "\ufffd") for value in values]
    return values


_TO_SQLITE: dict[str, Callable[[Any], Any]] = {
    "decimal": lambda value: format(value, "f"),
    "date": lambda value: value.isoformat(),
    "double": lambda value: "NaN" if math.isnan(value) else value,
    "json": write_json,
}
