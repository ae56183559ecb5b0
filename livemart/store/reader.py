"""Reads the serving store: every answer comes from one snapshot, and of the right tenants only.

Used by the server and by `status`. Whose rows they are is decided in `predicates` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from livemart.errors import PublishError
from livemart.store.connections import (
    UNDEFINED_COLUMN,
    UNDEFINED_TABLE,
    close_engine,
    is_made,
    open_engine,
    reached,
    shown_url,
)
from livemart.store.run_copy import read_run_copy
from livemart.store.schema import PUBLISHED, SCHEMA_VERSION, STORE_IDENTITY
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView
from livemart.store.store import StoredModel, newest_published, read_models


class StoreReader:
    """The store as readers see it. Safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._models: tuple[Published, Mapping[str, StoredModel]] | None = None

    @classmethod
    def open(cls, url: str) -> StoreReader:
        """Return a reader of the store at `url`; nothing is connected yet."""
        return cls(open_engine(url))

    def close(self) -> None:
        """Close all connections; one that is being read, at the end of its reading."""
        close_engine(self._engine)

    def newest(self) -> Published | None:
        """Return the publication that readers see now; None if nothing was published yet.

        Raises:
            PublishError: STORE_UNREACHABLE.
        """
        try:
            with self._begin() as connection:
                return newest_published(connection)
        except PublishError as error:
            if error.code == "STORE_EMPTY":
                return None
            raise

    def run_copy(self) -> Any | None:
        """Return how the runner's newest run goes, as JSON values; None if that is not known."""
        return read_run_copy(self._engine)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotView]:
        """Yield the newest snapshot; it stays the same until the block ends.

        Raises:
            PublishError: STORE_UNREACHABLE; STORE_EMPTY, if nothing was published yet.
        """
        with self._begin() as connection, ExitStack() as readings:
            published = self._require_published(connection)
            models = self._read_models(connection, published)
            yield SnapshotView(connection, published, models, readings)

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """Yield a connection in a read transaction. Raises PublishError."""
        with reached(self._engine):
            # Before it is opened: a moment later another process may have made it.
            has_file = is_made(self._engine)
            try:
                with self._engine.begin() as connection:
                    yield connection
            except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
                if not (has_file and is_made(self._engine)) or self._is_unmade(error):
                    raise self._empty() from error
                if _is_of_another_form(error):
                    raise self._other_version("another") from error
                raise

    def _is_unmade(self, error: sa.exc.DBAPIError) -> bool:
        """Return whether an error says that the store's tables are not made yet."""
        text, state = str(error.orig), getattr(error.orig, "sqlstate", None)
        return PUBLISHED.name in text and ("no such table" in text or state == UNDEFINED_TABLE)

    def _require_published(self, connection: Connection) -> Published:
        published = newest_published(connection)
        if published is None:
            raise self._empty()
        return published

    def _empty(self) -> PublishError:
        return PublishError(
            "STORE_EMPTY",
            f"{shown_url(self._engine)}: nothing is published",
            hint="run build; its snapshot is shown at once",
        )

    def _other_version(self, version: str) -> PublishError:
        return PublishError(
            "STORE_OF_ANOTHER_VERSION",
            f"{shown_url(self._engine)}: found form {version}, this program reads {SCHEMA_VERSION}",
            hint="run the same version of livemart here and where the store is filled",
        )

    def _read_models(
        self, connection: Connection, published: Published
    ) -> Mapping[str, StoredModel]:
        """Return the served models; they change with a publication only."""
        models = self._models
        if models is None or models[0] != published:
            version: int = connection.execute(
                sa.select(STORE_IDENTITY.c.schema_version)
            ).scalar_one()
            if version != SCHEMA_VERSION:
                raise self._other_version(str(version))
            self._models = models = (published, read_models(connection))
        return models[1]


def _is_of_another_form(error: sa.exc.DBAPIError) -> bool:
    """Return whether a column is missing: the tables have not the form that this program makes."""
    state = getattr(error.orig, "sqlstate", None)
    return "no such column" in str(error.orig) or state == UNDEFINED_COLUMN
