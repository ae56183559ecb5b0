"""Finds the stored rows of given keys without reading the table.

Used by landing, which compares new versions of keys with stored ones. Files whose statistics rule
the keys out are not opened; of the others only the key columns are read first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import is_member
from livemart.delta.version import DataFile, TableVersion
from livemart.delta.warehouse import Warehouse


def find_stored(
    warehouse: Warehouse,
    relation: str,
    version: int,
    key_rows: pa.Table,
    *,
    keys: Sequence[str],
) -> pa.Table:
    """Return the stored rows whose key is among `key_rows`.

    Files are ruled out by their key statistics, key by key; of the others only the key columns are
    read, and whole rows only where a key was found.

    Args:
        relation: a table unique by `keys`.
        key_rows: key columns, none of them NULL (landing refuses such records), and any others
            that a key's row must equal.
    """
    index = warehouse.files(relation, version)
    if not key_rows.num_rows or not len(index):
        return index.schema.empty_table()
    mask = index.bounds.may_hold(key_rows)
    positions = np.flatnonzero(mask)
    if len(positions):
        mask[positions] = _holds_a_key(index, positions, key_rows)
    rows_by_file = [
        index.read_file(file, index.schema.names).take(pa.array(hits))
        for file, hits in _files_with_keys(index, index.files(mask), key_rows, keys)
    ]
    return pa.concat_tables([index.schema.empty_table(), *rows_by_file]).combine_chunks()


def _files_with_keys(
    index: TableVersion, files: Sequence[DataFile], key_rows: pa.Table, keys: Sequence[str]
) -> list[tuple[DataFile, np.ndarray]]:
    looked_for = [key_rows.column(name) for name in keys]
    hits_by_file = []
    for file in files:
        stored = index.read_file(file, list(keys))
        if not stored.num_rows:
            continue
        # The version may be from before its keys were given a wider type.
        stored_keys = [
            stored.column(name).cast(values.type)
            for name, values in zip(keys, looked_for, strict=True)
        ]
        hits = np.flatnonzero(is_member(stored_keys, looked_for))
        if len(hits):
            hits_by_file.append((file, hits))
    return hits_by_file


def _holds_a_key(index: TableVersion, positions: np.ndarray, key_rows: pa.Table) -> np.ndarray:
    """Return, for each file, whether its text bounds hold one of these values, column by column."""
    held = np.ones(len(positions), dtype=bool)
    for name in key_rows.column_names:
        if not pa.types.is_string(key_rows.schema.field(name).type):
            continue
        bounds = index.bounds.text_bounds(name)
        if bounds is None:
            continue
        low, high = (bound.take(pa.array(positions)) for bound in bounds)
        values = np.sort(
            np.array(
                [value.encode() for value in pc.unique(key_rows.column(name)).to_pylist()],
                "O",
            )
        )
        lows = [b"" if text is None else text.encode() for text in low.to_pylist()]
        highs = [None if text is None else text.encode() for text in high.to_pylist()]
        first = np.searchsorted(values, np.array(lows, "O"))
        for position, (start, end) in enumerate(zip(first, highs, strict=True)):
            held[position] &= start < len(values) and (end is None or values[start] <= end)
    return held
