"""Finds the tables of models that were renamed or deleted.

Used by `status`. A table is one only if it was a model's, by the id that a table keeps for life;
whatever else is in the warehouse is none of ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from livemart.delta.warehouse import Warehouse
from livemart.inspect.published_tables import tables_by_id
from livemart.state.snapshots import SnapshotLog


@dataclass(frozen=True, slots=True)
class Orphan:
    """A table of a model that is no more, or that has another table now. `model`: unique id."""

    relation: str
    model: str


def find_orphans(warehouse: Warehouse, log: SnapshotLog) -> tuple[Orphan, ...]:
    """Return the tables that were models' once, and are none's now, sorted.

    A table that a reader of the newest published snapshot sees is none, nor is a copied folder. Nor
    is one of a model whose table is in another schema now: that may be the same project for another
    target.
    """
    newest = log.newest()
    if newest is None:
        return ()
    rows = [newest, log.newest_published() or newest]
    current = {state.table_id for row in rows for state in row.models.values()}
    once = log.model_tables()
    others = newest.sources.keys() | newest.landed.keys()
    relations = {
        table_id: candidates
        for table_id, names in tables_by_id(warehouse).items()
        if (candidates := [name for name in names if name not in others])
    }
    schemas = {
        unique_id: _schema(relation)
        for unique_id, state in newest.models.items()
        for relation in relations.get(state.table_id, ())
    }
    orphans = [
        Orphan(names[0], once[table_id])
        for table_id, names in relations.items()
        # A copied folder has the id of its original, and is somebody's copy.
        if table_id in once and table_id not in current and len(names) == 1
    ]
    return tuple(
        orphan
        for orphan in sorted(orphans, key=lambda orphan: orphan.relation)
        if orphan.model not in newest.set_aside
        and schemas.get(orphan.model, _schema(orphan.relation)) == _schema(orphan.relation)
    )


def _schema(relation: str) -> str:
    return relation.partition(".")[0]
