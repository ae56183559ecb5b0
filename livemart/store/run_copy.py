"""Carries a copy of the newest run's state, for a server that cannot see the warehouse.

Used by the runner's notes and by the server. It is one row in a separate table, so that it exists
before anything is published; the store can be made again without it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from livemart.store.column_types import Json
from livemart.store.connections import is_made, reached

_COPY = sa.Table(
    "livemart_last_run",
    sa.MetaData(),
    sa.Column("content", Json, nullable=False),
)


def write_run_copy(engine: Engine, content: Any) -> None:
    """Replace the copy by these JSON values.

    Raises:
        PublishError: STORE_UNREACHABLE.
    """
    with reached(engine), engine.begin() as connection:
        _COPY.create(connection, checkfirst=True)
        connection.execute(sa.delete(_COPY))
        connection.execute(sa.insert(_COPY).values(content=content))


def read_run_copy(engine: Engine) -> Any | None:
    """Return the copy; None if none was written, or the store cannot be read."""
    if not is_made(engine):
        return None
    try:
        with engine.begin() as connection:
            row = connection.execute(sa.select(_COPY.c.content)).first()
    except sa.exc.SQLAlchemyError:
        return None
    return None if row is None else row.content
