"""Decides from files whether a run handles so few rows that starting is most of its time.

Used before Spark starts, to choose its JVM. Rows that nothing here can count, of tables elsewhere
and of record logs, are taken to be many.
"""

from __future__ import annotations

import os
from contextlib import suppress

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError
from livemart.limits import FEW_WAREHOUSE_ROWS
from livemart.run.input_files import project_files, waiting_files
from livemart.settings import Settings
from livemart.state.last_pass import last_pass_at
from livemart.state.project_graph import read_graph
from livemart.state.snapshots import SnapshotLog

# Landed in a second or two.
_LITTLE_BYTES = 32 << 20


def is_small_refresh(settings: Settings) -> bool:
    """Return True if no file of the project has changed since the last pass, and little waits."""
    since = last_pass_at(settings.warehouse)
    if since is None or SnapshotLog(settings.warehouse).newest() is None:
        return False
    begin_ns = int(since.timestamp() - 1) * 1_000_000_000
    if any(changed_ns > begin_ns for changed_ns, *_ in project_files(settings).look().values()):
        return False
    if (files := waiting_files(settings)) is None:
        return False
    size = 0
    for path, bytes_, changed_ns in files:
        # A file that was moved here keeps its older time of change.
        with suppress(OSError):
            if max(changed_ns, os.stat(path).st_ctime_ns) > begin_ns:
                size += bytes_
    return size <= _LITTLE_BYTES


def has_little_data(settings: Settings) -> bool:
    """Return True if all models together, recomputed from all records, handle few rows."""
    if (files := waiting_files(settings)) is None:
        return False
    sizes = [size for _, size, _ in files]
    looks = project_files(settings).look()
    sizes += [size for path, (_, size, _) in looks.items() if path.endswith(".csv")]
    # A project without a file reads all of its rows elsewhere.
    if not sizes or sum(sizes) > _LITTLE_BYTES:
        return False
    warehouse = Warehouse(settings.warehouse)
    if (graph := read_graph(settings.warehouse)) is not None:
        sources = {node.relation for node in graph.nodes if node.kind == "source"}
        if not sources <= set(warehouse.relations()):
            return False
    return has_few_rows(warehouse)


def has_few_rows(warehouse: Warehouse) -> bool:
    """Return True if all tables of a warehouse together have few rows."""
    rows = 0
    try:
        for relation in warehouse.relations():
            rows += warehouse.files(relation).row_count
    except LivemartError:
        # Only Spark may be able to read a table, and count its rows.
        return False
    return rows <= FEW_WAREHOUSE_ROWS
