"""Compares what landed and what the models hold with the database itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

from examples.shop_cdc.shop import MODELS, TABLES
from livemart.delta.warehouse import Warehouse
from livemart.state.snapshots import SnapshotLog

Rows = Counter[frozenset[tuple[str, Any]]]


def differing(warehouse: Path, connection: psycopg.Connection[Any]) -> list[str]:
    """Return the tables and models whose rows are not those of the database; best none.

    Args:
        warehouse: its newest published snapshot is compared.
        connection: to the shop's database; nothing changes it meanwhile.
    """
    published = SnapshotLog(warehouse).newest_published()
    if published is None:
        return [*TABLES, *MODELS]
    versions = dict(published.sources)
    for unique_id, state in published.models.items():
        versions[f"shop_mart.{unique_id.rpartition('.')[2]}"] = state.version
    queries = {f"shop.{name}": query for name, query in TABLES.items()}
    queries |= {f"shop_mart.{name}": query for name, query in MODELS.items()}
    tables = Warehouse(warehouse)
    return [
        relation
        for relation, query in queries.items()
        if _landed(tables.read(relation, versions[relation]).to_pylist())
        != _stored(connection, query)
    ]


def _landed(rows: Iterable[dict[str, Any]]) -> Rows:
    # What landing adds is no column of the database.
    return Counter(frozenset(it for it in row.items() if it[0][0] != "_") for row in rows)


def _stored(connection: psycopg.Connection[Any], query: str) -> Rows:
    cursor = connection.execute(query)
    names = [column.name for column in cursor.description or ()]
    return Counter(frozenset(zip(names, row, strict=True)) for row in cursor.fetchall())
