"""Lists the tables of the newest published snapshot, each at its version, in its folder.

Used by the command `tables`, and by programs that read the tables themselves: pandas, DuckDB,
another Spark. A folder read without a version shows rows that are held back from readers, and
tables of different moments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from livemart.delta.version import version_gone
from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, StateError
from livemart.project.graph import short_name
from livemart.state.snapshots import Snapshot, SnapshotLog
from livemart.storage.location import Location, StoragePlace


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table at the version that readers see."""

    relation: str
    path: str
    """Its folder."""
    version: int
    node: str | None = None
    """Unique id of the model; None for a landed table, or another source."""
    is_set_aside: bool = False
    """The version is that of an earlier snapshot."""


def published_snapshot(warehouse: StoragePlace) -> Snapshot:
    """Return the snapshot that readers see.

    Raises:
        StateError: NOTHING_PUBLISHED.
    """
    if (snapshot := SnapshotLog(warehouse).newest_published()) is None:
        raise StateError(
            "NOTHING_PUBLISHED",
            f"{warehouse}: no published snapshot",
            hint="run `build` first",
        )
    return snapshot


def snapshot_numbered(warehouse: StoragePlace, snapshot_id: int) -> Snapshot:
    """Return a snapshot by its number, published or held.

    Raises:
        StateError: SNAPSHOT_UNKNOWN.
    """
    log = SnapshotLog(warehouse)
    if (snapshot := log.row(snapshot_id)) is None:
        newest = log.newest()
        raise StateError(
            "SNAPSHOT_UNKNOWN",
            f"{warehouse}: found no snapshot {snapshot_id}"
            + (f", the newest is {newest.snapshot_id}" if newest else ", nor any other"),
            hint="`livemart history` lists them" if newest else "run `build` first",
        )
    return snapshot


def require_files(warehouse: StoragePlace, snapshot: Snapshot) -> None:
    """Check that each table of a snapshot still has its entries and files.

    Raises:
        RefreshError: VERSION_GONE, TABLE_MISSING.
    """
    tables = Warehouse(warehouse)
    for table in _tables(tables, snapshot):
        files = tables.files(table.relation, table.version)
        if not all(files.storage.head(unquote(file.path)) for file in files.files()):
            raise version_gone(table.relation, table.version)


def published_tables(
    warehouse: Path | Location | str, snapshot: Snapshot | None = None
) -> tuple[PublishedTable, ...]:
    """Return the tables of a snapshot, by relation; all are of the same moment.

    Args:
        warehouse: root of all tables, a path or a URL.
        snapshot: the one to look at; the newest published if None.

    Raises:
        StateError: NOTHING_PUBLISHED.
    """
    place = Location.of(warehouse).place
    root = place.absolute() if isinstance(place, Path) else place
    snapshot = snapshot or published_snapshot(root)
    return tuple(sorted(_tables(Warehouse(root), snapshot), key=lambda table: table.relation))


def own_table_name(unique_id: str) -> str:
    """Return the name that dbt gives the table of a model, if the model has no alias.

    >>> own_table_name("model.shop.totals.v2")
    'totals_v2'
    """
    return short_name(unique_id).replace(".", "_")


def tables_by_id(warehouse: Warehouse) -> dict[str, list[str]]:
    """Return the relations of a warehouse by the id of their table; a copied folder shares one."""
    relations: dict[str, list[str]] = defaultdict(list)
    for relation in warehouse.relations():
        # Dropped a moment ago, or a table that only its writer can read.
        with suppress(LivemartError):
            relations[warehouse.table_id(relation)].append(relation)
    return relations


def describe_published(snapshot: Snapshot, tables: Sequence[PublishedTable]) -> dict[str, Any]:
    """Return snapshot and tables as JSON values."""
    return {
        "snapshot_id": snapshot.snapshot_id,
        "as_of": snapshot.as_of.isoformat() if snapshot.as_of else None,
        "finished_at": snapshot.finished_at.isoformat(),
        "tables": [asdict(table) for table in tables],
    }


def render_published(snapshot: Snapshot, tables: Sequence[PublishedTable]) -> str:
    """Return a line for the snapshot and one for each table."""
    width = max((len(table.relation) for table in tables), default=0)
    as_of = f", as of {snapshot.as_of:%Y-%m-%d %H:%M}" if snapshot.as_of else ""
    lines = [f"snapshot {snapshot.snapshot_id}{as_of}: read each table at its version"]
    for table in tables:
        aside = "  (set aside: of an earlier snapshot)" if table.is_set_aside else ""
        lines.append(f"{table.relation:<{width}}  {table.version:>6}  {table.path}{aside}")
    return "\n".join(lines)


def _tables(warehouse: Warehouse, snapshot: Snapshot) -> Iterator[PublishedTable]:
    for relation, version in snapshot.sources.items():
        yield PublishedTable(
            relation, str(warehouse.location(relation)), _readable(warehouse, relation, version)
        )
    relations = tables_by_id(warehouse)
    for unique_id, state in snapshot.models.items():
        name = own_table_name(unique_id)
        # A copied folder has the id of its original.
        named = sorted(
            relations.get(state.table_id, ()), key=lambda table: table.rpartition(".")[2] != name
        )
        for relation in named[:1]:
            yield PublishedTable(
                relation,
                str(warehouse.location(relation)),
                _readable(warehouse, relation, state.version),
                unique_id,
                unique_id in snapshot.set_aside,
            )


def _readable(warehouse: Warehouse, relation: str, version: int) -> int:
    """Return the newest version that holds the same rows: its files may say more of them."""
    with suppress(LivemartError):
        return warehouse.newest_alike(relation, version)
    return version
