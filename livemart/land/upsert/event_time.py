"""Finds rows that give their key another event time, where it is promised to be fixed.

Used by the upsert of sources with `event_time_is_fixed`; such a row is a dead letter (ADR-0009). A
key's time is the stored one; for a key that is not stored, that of its lowest sequence in the
batch: the earliest of several, none last, so that order never matters. Deletes need no time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import row_codes
from livemart.land.reasons import LetterReason
from livemart.project.graph import RowRules, SourceTable

MOVED = LetterReason.EVENT_TIME_MOVED


def moved_detail(source: SourceTable) -> str:
    """Return the reason against a record that moves its key's event time."""
    return f"{source.event_time} differs from the key's, which is promised to be fixed"


def find_moved(
    rules: RowRules, event_time: str, stored: pa.Table, rows: pa.Table, is_delete: np.ndarray
) -> np.ndarray:
    """Return which of `rows` give their key another event time (boolean array)."""
    names = list(dict.fromkeys([*rules.keys, event_time, *rules.sequence_by]))
    every = pa.concat_tables([stored.select(names), rows.select(names)]).combine_chunks()
    split = stored.num_rows
    codes = row_codes([every.column(name) for name in rules.keys], len(every))
    times = row_codes([every.column(event_time)], len(every))
    order = list(dict.fromkeys([*rules.sequence_by, event_time]))
    is_row = np.concatenate([np.ones(split, bool), ~is_delete])
    by_sequence = pc.sort_indices(
        every.select(order), sort_keys=[(name, "ascending") for name in order]
    ).to_numpy()
    stored_first = by_sequence[np.argsort(by_sequence >= split, kind="stable")]
    ordered = stored_first[is_row[stored_first]]
    _, first = np.unique(codes[ordered], return_index=True)
    reference = np.full(int(codes.max(initial=0)) + 1, -2, dtype=np.int64)
    reference[codes[ordered[first]]] = times[ordered[first]]
    moved: np.ndarray = (times != reference[codes])[split:] & ~is_delete
    return moved
