"""What a landed table already holds of some keys, found without reading the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import is_member
from livemart.delta.version import DataFile, FileIndex
from livemart.delta.warehouse import Warehouse

_MAX_BLOCK = 4_000_000


def find_stored(
    warehouse: Warehouse,
    relation: str,
    version: int,
    wanted: pa.Table,
    *,
    keys: Sequence[str],
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the stored rows whose key is among `wanted`.

    Files are ruled out by their key statistics, key by key; of the others only the key columns are
    read, and whole rows only where a key was found.

    Args:
        warehouse: the tables.
        relation: a table unique by `keys`.
        version: the version to look at.
        wanted: key columns, and any others that a key's row must equal.
        keys: names of the key columns.
        columns: of the rows returned; all of the table if None.
    """
    index = warehouse.files(relation, version)
    names = list(columns) if columns is not None else index.schema.names
    if not wanted.num_rows or not len(index):
        return _empty(index.schema, names)
    mask = index.bounds.may_hold(wanted)
    positions = np.flatnonzero(mask)
    if len(positions):
        mask[positions] = _holds_a_key(index, positions, wanted)
    files = index.files(mask)
    found: list[pa.Table] = []
    for file, hits in _files_with_keys(warehouse, relation, version, files, wanted, keys):
        rows = index.read_file(file, names)
        found.append(rows.take(pa.array(hits)))
    if not found:
        return _empty(index.schema, names)
    return pa.concat_tables(found).combine_chunks()


def _files_with_keys(
    warehouse: Warehouse,
    relation: str,
    version: int,
    files: Sequence[DataFile],
    wanted: pa.Table,
    keys: Sequence[str],
) -> list[tuple[DataFile, np.ndarray]]:
    index = warehouse.files(relation, version)
    looked_for = [wanted.column(name) for name in keys]
    found = []
    for file in files:
        stored = index.read_file(file, list(keys))
        if not stored.num_rows:
            continue
        hits = np.flatnonzero(is_member([stored.column(name) for name in keys], looked_for))
        if len(hits):
            found.append((file, hits))
    return found


def _holds_a_key(index: FileIndex, positions: np.ndarray, wanted: pa.Table) -> np.ndarray:
    """Return, for each file, whether its text bounds hold a wanted value, column by column."""
    held = np.ones(len(positions), dtype=bool)
    for name in wanted.column_names:
        if not pa.types.is_string(wanted.schema.field(name).type):
            continue
        bounds = index.bounds.text_bounds(name)
        if bounds is None:
            continue
        low, high = (bound.take(pa.array(positions)) for bound in bounds)
        values = np.sort(
            np.array([value.encode() for value in pc.unique(wanted.column(name)).to_pylist()], "O")
        )
        lows = [b"" if text is None else text.encode() for text in low.to_pylist()]
        highs = [None if text is None else text.encode() for text in high.to_pylist()]
        first = np.searchsorted(values, np.array(lows, "O"))
        for position, (start, end) in enumerate(zip(first, highs, strict=True)):
            held[position] &= start < len(values) and (end is None or values[start] <= end)
    return held


def _empty(schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    return pa.schema([schema.field(name) for name in names]).empty_table()
