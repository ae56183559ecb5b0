"""Decides which version of a key wins: the same whatever the order, the batches or the repeats.

Used for a whole micro-batch in the driver, and for ranges of keys in Spark's workers. The newest by
sequence wins; at an equal sequence a delete, then the greater canonical row text. Being a maximum,
it can be taken over any grouping of the versions.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import row_codes


@dataclass(frozen=True, slots=True)
class KeyVersions:
    """All that is known of some keys: stored rows, remembered deletes, arrived rows.

    `stored` and `arrived` hold `columns` (keys and sequence among them), `remembered` keys and
    sequence only. `is_delete`: for each arrived row, whether it deletes its key.
    """

    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    columns: tuple[str, ...]
    stored: pa.Table
    remembered: pa.Table
    arrived: pa.Table
    is_delete: np.ndarray


@dataclass(frozen=True, slots=True)
class Winners:
    """Positions of the rows that change. Rows that are in none of these are superseded."""

    written: np.ndarray
    """Arrived rows that become the row of their key."""
    deleting: np.ndarray
    """Arrived deletes to remember."""
    removed: np.ndarray
    """Stored rows that are replaced or deleted."""
    forgotten: np.ndarray
    """Remembered deletes of keys that are deleted once more."""


def decide(versions: KeyVersions) -> Winners:
    """Return the changes by the arrived versions."""
    names = list(dict.fromkeys([*versions.keys, *versions.sequence_by]))
    sizes = [len(versions.stored), len(versions.remembered), len(versions.arrived)]
    every = pa.concat_tables(
        [part.select(names) for part in (versions.stored, versions.remembered, versions.arrived)]
    ).combine_chunks()
    origin = np.repeat(np.arange(3), sizes)
    is_delete = np.concatenate(
        [np.zeros(sizes[0], bool), np.ones(sizes[1], bool), versions.is_delete]
    )
    key = row_codes([every.column(name) for name in versions.keys], len(every))
    ranks = [_ranks(every.column(name)) for name in versions.sequence_by]

    # Last of its key in this order: the greatest; what is known already beats a repeat of it.
    order = np.lexsort((-np.arange(len(key)), is_delete, *reversed(ranks), key))
    last = np.flatnonzero(np.append(np.diff(key[order]) != 0, True)) if len(order) else order
    best = order[last]
    best = _break_ties(versions, best, key, [*ranks, is_delete], sizes)

    arrived = best[origin[best] == 2]
    offset = sizes[0] + sizes[1]
    deleting = arrived[is_delete[arrived]]
    written = arrived[~is_delete[arrived]]
    removed = np.flatnonzero(np.isin(key[: sizes[0]], key[arrived]))
    forgotten = np.flatnonzero(np.isin(key[sizes[0] : offset], key[deleting]))
    return Winners(np.sort(written - offset), np.sort(deleting - offset), removed, forgotten)


def canonical_text(row: Mapping[str, Any]) -> str:
    """Return the text that orders different rows of one key and sequence.

    NULLs are left out and names sorted, so a column that drift adds later does not change it.

    >>> canonical_text({"status": "placed", "amount": Decimal("1.50"), "note": None})
    '{"amount":"1.50","status":"placed"}'
    """
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(
        present, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain
    )


def _break_ties(
    versions: KeyVersions,
    best: np.ndarray,
    key: np.ndarray,
    ranks: Sequence[np.ndarray],
    sizes: Sequence[int],
) -> np.ndarray:
    """Among rows of one key and sequence take the greatest text; repeats change nothing."""
    if len(best) == len(key):
        return best
    top_of = np.full(int(key.max()) + 1, -1)
    top_of[key[best]] = best
    tops = top_of[key]
    is_tied = np.ones(len(key), dtype=bool)
    for rank in ranks:
        is_tied &= rank == rank[tops]
    is_delete = ranks[-1].astype(bool)
    is_tied &= ~is_delete
    tied = np.flatnonzero(is_tied & (np.bincount(key, weights=is_tied)[key] > 1))
    if not len(tied):
        return best
    rows = _rows_at(versions, tied, sizes)
    # Which of two equal rows arrived first must not matter, so they are two unless identical.
    content = row_codes(rows.columns, len(rows), identical=True)
    reference = np.searchsorted(tied, tops[tied])
    differing = np.isin(key[tied], key[tied][content != content[reference]])
    greatest: dict[int, tuple[str, int]] = {}
    for index in np.flatnonzero(differing).tolist():
        position = int(tied[index])
        text = canonical_text(rows.slice(index, 1).to_pylist()[0])
        leader = greatest.get(int(key[position]))
        if leader is None or text > leader[0]:
            greatest[int(key[position])] = (text, position)
    for code, (_, position) in greatest.items():
        top_of[code] = position
    chosen: np.ndarray = top_of[key[best]]
    return chosen


def _rows_at(versions: KeyVersions, positions: np.ndarray, sizes: Sequence[int]) -> pa.Table:
    """Return stored and arrived rows by their position among all versions."""
    columns = list(versions.columns)
    # Remembered deletes are between the two, and are not among these.
    stored = positions[positions < sizes[0]]
    arrived = positions[positions >= sizes[0] + sizes[1]] - sizes[0] - sizes[1]
    parts = ((versions.stored, stored), (versions.arrived, arrived))
    picked = [rows.select(columns).take(pa.array(places, pa.int64())) for rows, places in parts]
    return pa.concat_tables(picked).combine_chunks()


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    """Return integers in the order of a column's values, equal for equal ones."""
    ranks: np.ndarray = pc.rank(column, tiebreaker="dense").to_numpy()
    return ranks.astype(np.int64)


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            raise TypeError(f"{type(value)} in a row")
