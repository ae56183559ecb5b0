"""Describes the store's tables: those of the store itself, and one for each served model.

Used by publisher and readers. A served table never changes its shape: a rebuilt model gets a new
table under a new name. So a reader of the snapshot before still finds the old one (PostgreSQL shows
DDL and TRUNCATE to transactions that began earlier).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count

import sqlalchemy as sa

from livemart.store.column_types import Instant, Json, PlainText, sql_type
from livemart.store.served import ServedModel

SCHEMA_VERSION = 5
# PostgreSQL cuts names after 63 bytes; a number is added when a table is made again.
_NAME_BYTES = 50
ROW_HASH = "_row_hash"
ROW_COUNT = "_row_count"

METADATA = sa.MetaData()
STORE_IDENTITY = sa.Table(
    "livemart_store",
    METADATA,
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("store_id", PlainText, nullable=False),
)
PUBLISHED = sa.Table(
    "livemart_published",
    METADATA,
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("as_of", Instant),
    sa.Column("published_at", Instant, nullable=False),
    sa.Column("epoch", PlainText, nullable=False),
    sa.Column("checked_at", Instant, nullable=False),
    sa.Column("set_aside", Json),
    sa.Column("strategy_failures", Json),
)
MODELS = sa.Table(
    "livemart_models",
    METADATA,
    sa.Column("model", PlainText, primary_key=True),
    sa.Column("relation", PlainText, nullable=False),
    sa.Column("table_version", sa.BigInteger, nullable=False),
    sa.Column("table_id", PlainText, nullable=False),
    sa.Column("fingerprint", PlainText, nullable=False),
    sa.Column("columns", Json, nullable=False),
    sa.Column("row_key", Json, nullable=False),
    sa.Column("declared_key", Json, nullable=False),
    sa.Column("tenant_column", PlainText),
    sa.Column("event_time", PlainText),
    sa.Column("time_column", PlainText),
    sa.Column("table_name", PlainText, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("copied_at", sa.BigInteger, nullable=False),
)
CHANGES = sa.Table(
    "livemart_changes",
    METADATA,
    sa.Column("model", PlainText, primary_key=True),
    sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tenant", PlainText),
    sa.Column("op", PlainText, nullable=False),
    sa.Column("row", Json, nullable=False),
    # The values that an update replaced: with them, `row` is the old row.
    sa.Column("replaced", Json),
    sa.Index("livemart_changes_tenant", "model", "tenant", "snapshot_id"),
)
# Tables that no snapshot points to any more; the next publication drops them.
RETIRED = sa.Table(
    "livemart_retired", METADATA, sa.Column("table_name", PlainText, primary_key=True)
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a served model is stored: its table's name and the model's form."""

    table_name: str
    model: ServedModel


@lru_cache(maxsize=256)
def served_table(layout: Layout) -> sa.Table:
    """Return the table of a served model; its columns are found by the model's own names.

    With a key, the key is the primary key. Without one, rows are kept once with their number:
    `_row_hash` and `_row_count`.
    """
    model = layout.model
    columns = [
        sa.Column(
            # Always quoted: a list of reserved words may not fit the database in use.
            sa.quoted_name(_safe_name(name), quote=True),
            sql_type(kind),
            key=name,
            autoincrement=False,
            nullable=name not in model.row_key,
        )
        for name, kind in model.columns
    ]
    # In the key's own order, not that of the columns: the index finds its first column.
    by_name = {str(column.key): column for column in columns}
    if model.row_key:
        key = [by_name[name] for name in model.row_key]
    else:
        key = [sa.Column(bag_column(model, ROW_HASH), PlainText, nullable=False)]
        columns += [
            *key,
            sa.Column(bag_column(model, ROW_COUNT), sa.BigInteger, nullable=False),
        ]
    table = sa.Table(
        layout.table_name,
        sa.MetaData(),
        *columns,
        sa.PrimaryKeyConstraint(*key, name=f"pk_{layout.table_name}"),
        sqlite_with_rowid=not model.row_key,
    )
    tenant, time = model.tenant_column, model.time_column
    if tenant and model.row_key[:1] != (tenant,):
        sa.Index(f"ix_{layout.table_name}_tenant", by_name[tenant])
    if tenant and time and model.row_key[:2] != (tenant, time):
        sa.Index(f"ix_{layout.table_name}_time", by_name[tenant], by_name[time])
    return table


def bag_column(model: ServedModel, name: str) -> str:
    """Return the name of a column added to a model without key, unlike all of the model's own."""
    names = {column.lower() for column, _ in model.columns}
    while name in names:
        name = f"_{name}"
    return name


def table_name(model: str, other_names: Collection[str]) -> str:
    """Return a name for a new table of `model`: `served_<model>`, with a number if taken.

    >>> table_name("restaurant_sales_trend", {"served_restaurant_sales_trend"})
    'served_restaurant_sales_trend_2'
    """
    base = _safe_name(f"served_{model}".lower())
    names = chain([base], (f"{base}_{number}" for number in count(2)))
    return next(name for name in names if name not in other_names)


def _safe_name(name: str) -> str:
    """Return `name` if every database takes it, else its safe characters and a hash."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if safe == name and len(name) <= _NAME_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{safe[: _NAME_BYTES - 9]}_{digest}"
