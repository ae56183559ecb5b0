"""Holds the serving store as its one publisher sees it.

SQLite in WAL mode or PostgreSQL, which show readers one published snapshot at a time. The publisher
can make everything in it again from the warehouse. So it simply fills a store again that is of
another form or lost something.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from livemart.store.connections import open_engine, reached
from livemart.store.schema import (
    METADATA,
    MODELS,
    PUBLISHED,
    RETIRED,
    ROW_COUNT,
    SCHEMA_VERSION,
    STORE_IDENTITY,
    Layout,
    bag_column,
    served_table,
)
from livemart.store.served import ModelDescription, Published, ServedModel

# Beside others' locks in the same database; the second part is the schema.
_ADVISORY_LOCK = 0x6C697665
_NEWEST = sa.select(PUBLISHED).order_by(PUBLISHED.c.snapshot_id.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A served model as the store holds it: its form, and the version of its table.

    `declared_key` is the project's; `row_key` is empty if that did not hold. `copied_at` is the
    snapshot at which all rows were copied: before it the changes are not known.
    """

    layout: Layout
    relation: str
    table_version: int
    table_id: str
    fingerprint: str
    declared_key: tuple[str, ...]
    event_time: str | None
    row_count: int
    copied_at: int

    def to_row(self) -> dict[str, Any]:
        """Return the row of `livemart_models`."""
        row = asdict(self)
        layout = row.pop("layout")
        model = layout.pop("model")
        return {"model": model.pop("name"), **model, **layout, **row}


@dataclass(frozen=True, slots=True)
class StoreState:
    """The start of a publication. `store_id` is None if the store is not one of ours yet."""

    store_id: str | None = None
    published: Published | None = None
    models: Mapping[str, StoredModel] = field(default_factory=dict)
    table_names: frozenset[str] = frozenset()

    @property
    def identity(self) -> tuple[str | None, Published | None]:
        """The values that another publication in between would have changed."""
        return self.store_id, self.published


class Store:
    """The store as its one publisher sees it. Safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # The descriptions that came with the last publication, and the store behind it.
        self._described: tuple[object, Mapping[str, ModelDescription]] | None = None

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
                schema = sa.func.hashtext(sa.func.current_schema())
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK, schema)))
            yield connection

    def is_described(self, state: StoreState, descriptions: Mapping[str, ModelDescription]) -> bool:
        """Return True if a store in this state is known to hold these descriptions."""
        return self._described == (state.identity, descriptions)

    def note_described(
        self, state: StoreState, descriptions: Mapping[str, ModelDescription]
    ) -> None:
        """Note that a store in this state, which was committed, holds these descriptions."""
        self._described = state.identity, descriptions

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def read_state(connection: Connection) -> StoreState:
    """Return the state of the store, in the transaction under way."""
    names = frozenset(sa.inspect(connection).get_table_names())
    if not names.issuperset(METADATA.tables):
        return StoreState(table_names=names)
    version = connection.execute(sa.select(STORE_IDENTITY)).first()
    if version is None or version.schema_version != SCHEMA_VERSION:
        return StoreState(table_names=names)
    published, models = newest_published(connection), read_models(connection)
    return StoreState(version.store_id, published, models, names)


def newest_published(connection: Connection) -> Published | None:
    """Return the publication that readers see, None if nothing was published."""
    row = connection.execute(_NEWEST).first()
    return None if row is None else Published(**row._mapping)


def read_models(connection: Connection) -> dict[str, StoredModel]:
    """Return the served models, by name."""
    rows = connection.execute(sa.select(MODELS).order_by(MODELS.c.model))
    return {row.model: _stored_model(row) for row in rows}


def _stored_model(row: sa.Row[Any]) -> StoredModel:
    """Return a row of `livemart_models`; lists of names are tuples."""
    values: dict[str, Any] = {
        name: tuple(it) if isinstance(it, list) else it for name, it in row._asdict().items()
    }
    model = ServedModel(
        name=values.pop("model"),
        columns=tuple((name, kind) for name, kind in values.pop("columns")),
        **{name: values.pop(name) for name in ("row_key", "tenant_column", "time_column")},
    )
    return StoredModel(layout=Layout(values.pop("table_name"), model), **values)


def make_tables(connection: Connection) -> None:
    """Make the store's own tables again, empty; the new store has a new id.

    Tables of others in the same database stay. Served tables of the old store are retired.
    """
    served = _find_served(connection)
    METADATA.drop_all(connection)
    METADATA.create_all(connection)
    if served:
        connection.execute(sa.insert(RETIRED), [{"table_name": name} for name in sorted(served)])
    identity = {"schema_version": SCHEMA_VERSION, "store_id": secrets.token_hex(8)}
    connection.execute(sa.insert(STORE_IDENTITY).values(identity))


def count_rows(connection: Connection, stored: StoredModel) -> int:
    """Return the number of rows that a served table holds, repeats included."""
    table = served_table(stored.layout)
    model = stored.layout.model
    rows: sa.ColumnElement[Any] = sa.func.count()
    if not model.row_key:
        rows = sa.func.coalesce(sa.func.sum(table.c[bag_column(model, ROW_COUNT)]), 0)
    return int(connection.execute(sa.select(rows).select_from(table)).scalar_one())


def _find_served(connection: Connection) -> set[str]:
    """Return the served tables that a store of any version names."""
    inspector = sa.inspect(connection)
    names: set[str] = set()
    for table in (MODELS, RETIRED):
        if inspector.has_table(table.name) and "table_name" in {
            column["name"] for column in inspector.get_columns(table.name)
        }:
            names.update(connection.execute(sa.select(table.c.table_name)).scalars())
    return names
