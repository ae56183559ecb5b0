"""Compares rows in Arrow, for values of every type: as equal or as identical (ADR-0013).

Used wherever rows in memory are looked up, netted or subtracted. Equal is what Spark's GROUP BY and
joins call equal: -0.0 equals 0.0, and a map equals one with its entries in another order. Keys are
equal. Identical is what is the same bit for bit: rows that change, cancel out or go are identical.
NULL and NaN are one value each in both. Arrow's own grouping knows no lists, structs or maps, so
each column becomes small integer codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.variants import has_parts, identities, is_variant

# No table of the analyst's has columns that begin like these: they are added to its own.
WEIGHT = "__livemart_weight"
# How often a changed row was there, and is there now.
OLD_COUNT = "__livemart_old_count"
NEW_COUNT = "__livemart_new_count"

_Codes = npt.NDArray[Any]


def row_codes(
    columns: Sequence[pa.Array | pa.ChunkedArray], length: int, *, identical: bool = False
) -> _Codes:
    """Return one int64 code per row; two rows share a code iff all their columns are equal.

    Args:
        columns: arrays of `length` rows each; no column at all makes every row equal.
        identical: they share one iff all their columns are identical.
    """
    combined = np.zeros(length, dtype=np.int64)
    for position, column in enumerate(columns):
        codes = _value_codes(one_array(column), identical)
        combined = codes if position == 0 else _pair_codes(combined, codes)
    return combined


def _codes_of_both(
    left: Sequence[pa.Array | pa.ChunkedArray],
    right: Sequence[pa.Array | pa.ChunkedArray],
    *,
    identical: bool,
) -> tuple[_Codes, _Codes]:
    """Return `row_codes` of rows on two sides, of the same columns and types, at least one."""
    stacked = [
        pa.concat_arrays([one_array(column), one_array(other)])
        for column, other in zip(left, right, strict=True)
    ]
    codes = row_codes(stacked, len(stacked[0]), identical=identical)
    return codes[: len(left[0])], codes[len(left[0]) :]


def net_rows(table: pa.Table, weights: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Add up the weights of identical rows.

    Args:
        table: rows, repeated as often as they like.
        weights: bigint, one for each row, never NULL.

    Returns:
        Columns of `table` plus `WEIGHT` (bigint, never 0); key: all columns; one row per
        distinct row.
    """
    codes = row_codes(table.columns, table.num_rows, identical=True)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, group, np.asarray(one_array(weights)))
    nonzero = np.flatnonzero(sums)
    netted = table.take(pa.array(first[nonzero])).append_column(
        pa.field(WEIGHT, pa.int64(), nullable=False), pa.array(sums[nonzero], pa.int64())
    )
    return netted.combine_chunks()


def difference(new: pa.Table, old: pa.Table) -> pa.Table:
    """Return the rows whose multiplicity differs between two bags; a row is all that is identical.

    Args:
        new: rows, each as often as it is there now.
        old: the same columns, as often as it was there.

    Returns:
        The columns of `new` plus `OLD_COUNT`, `NEW_COUNT` (bigint); one row per distinct row.
    """
    both = pa.concat_tables([new, old.cast(new.schema)]).combine_chunks()
    keys = [_canonical(one_array(column), identical=True) for column in both.columns]
    if not all(_is_plain(key.type) for key in keys):
        # Arrow cannot group by values of other types, but by their codes.
        keys = [pa.array(row_codes(keys, both.num_rows, identical=True))]
    names = [f"key_{number}" for number in range(len(keys))]
    counted = pa.table(
        [*keys, np.arange(both.num_rows), np.arange(both.num_rows) < new.num_rows],
        names=[*names, "place", "is_new"],
    )
    groups = counted.group_by(names, use_threads=False).aggregate(
        [("place", "min"), ("place", "count"), ("is_new", "sum")]
    )
    new_counts = groups.column("is_new_sum").cast(pa.int64())
    old_counts = pc.subtract(groups.column("place_count"), new_counts)
    changed = pc.not_equal(old_counts, new_counts)
    rows = both.take(groups.column("place_min").filter(changed))
    for name, values in ((OLD_COUNT, old_counts), (NEW_COUNT, new_counts)):
        rows = rows.append_column(name, values.filter(changed))
    return rows.combine_chunks()


def is_member(
    rows: Sequence[pa.Array | pa.ChunkedArray],
    others: Sequence[pa.Array | pa.ChunkedArray],
    *,
    identical: bool = False,
) -> _Codes:
    """Return, for each row of `rows`, whether an equal row is in `others` (boolean array).

    Args:
        rows: columns of the rows asked about.
        others: the same columns, same types, of the rows looked for.
        identical: whether an identical one is.
    """
    if not rows:
        raise ValueError("rows without columns have no identity")
    left = list(rows)
    likely = np.arange(len(rows[0]))
    # One hash look-up a column leaves few rows for the next one, and for exact codes.
    for place, values in enumerate(others):
        if _is_plain(left[place].type) and len(likely):
            mine, theirs = (_canonical(it, identical) for it in (left[place], one_array(values)))
            is_among = pc.is_in(mine, theirs)
            likely = likely[np.asarray(is_among)]
            left = [column.filter(is_among) for column in left]
    if len(likely) and (len(rows) > 1 or not _is_plain(rows[0].type)):
        likely = likely[np.isin(*_codes_of_both(left, others, identical=identical))]
    mask = np.zeros(len(rows[0]), dtype=bool)
    mask[likely] = True
    return mask


def without(rows: pa.Table, removed: pa.Table) -> pa.Table:
    """Return a bag of rows less another one, by identical rows.

    Args:
        rows: each as often as it is there.
        removed: the same columns; what is not in `rows` takes nothing away.
    """
    is_removed = first_copies(rows, removed)
    return rows.filter(pa.array(~is_removed)).combine_chunks() if is_removed.any() else rows


def first_copies(rows: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows are in another bag: of identical ones the first, as many as are there.

    Args:
        rows: each as often as it is there.
        others: the same columns.
    """
    if not rows.num_columns:
        raise ValueError("rows without columns have no identity")
    is_copy = np.zeros(rows.num_rows, dtype=bool)
    if not rows.num_rows or not others.num_rows:
        return is_copy
    likely = np.flatnonzero(is_member(rows.columns, others.columns, identical=True))
    if not len(likely):
        return is_copy
    there = rows.take(pa.array(likely)).columns
    codes_there, codes_of_others = _codes_of_both(there, others.columns, identical=True)
    order = np.argsort(codes_there, kind="stable")
    place = np.arange(len(codes_there)) - np.searchsorted(
        codes_there[order], codes_there[order], "left"
    )
    is_copy[likely[order[place < copies_of(codes_there[order], codes_of_others)]]] = True
    return is_copy


def matching_rows(
    distinct: Sequence[pa.Array], rows: Sequence[pa.Array]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return, for each row of `rows`, the place of its equal in `distinct`, and if it has one.

    Args:
        distinct: columns of rows of which no two are equal; at least one column.
        rows: the same columns, same types.

    Returns:
        The place of a row without an equal is 0.
    """
    codes_of_distinct, codes = _codes_of_both(distinct, rows, identical=False)
    return places_of(codes, codes_of_distinct)


def with_both_zeros(rows: pa.Table) -> pa.Table:
    """Return the rows, and those with -0.0 or 0.0 also with the other one.

    The two are one key, but a text or a quotient that is computed from them tells them apart.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(place)
            zeros = rows.filter(pc.equal(column, pa.scalar(0.0, field.type)))
            if zeros.num_rows:
                others = zeros.set_column(place, field, pc.negate(zeros.column(place)))
                rows = pa.concat_tables([rows, others]).combine_chunks()
    return rows


def places_of(
    codes: _Codes, distinct: _Codes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return, for each code, its place among distinct ones (0 if none), and if it has one."""
    place = np.zeros(len(codes), dtype=np.int64)
    if not len(distinct):
        return place, np.zeros(len(codes), dtype=bool)
    order = np.argsort(distinct, kind="stable")
    nearest = order[np.minimum(np.searchsorted(distinct[order], codes), len(distinct) - 1)]
    has_place = distinct[nearest] == codes
    place[has_place] = nearest[has_place]
    return place, has_place


def copies_of(codes: _Codes, others: _Codes) -> npt.NDArray[np.int64]:
    """Return how often each code is among the others."""
    others = np.sort(others)
    return np.searchsorted(others, codes, "right") - np.searchsorted(others, codes, "left")


def repeated(rows: pa.Table, counts: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return each row as often as its count (bigint, not NULL) says, one chunk a column."""
    times = np.asarray(one_array(counts))
    if (times != 1).any():
        rows = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times)))
    return rows.combine_chunks()


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # several chunks remain only above 2 GB
            column = pa.concat_arrays(column.chunks)
    return column


def _is_plain(kind: pa.DataType) -> bool:
    return not (has_parts(kind) or pa.types.is_null(kind) or pa.types.is_dictionary(kind))


def _canonical(array: pa.Array | pa.ChunkedArray, identical: bool) -> pa.Array | pa.ChunkedArray:
    """Give every NaN one representation, and -0.0 that of 0.0 where the two are equal.

    Arrow's hashes tell the two zeros apart.
    """
    if not pa.types.is_floating(array.type):
        return array
    if not identical:
        zero = pa.scalar(0.0, array.type)
        array = pc.if_else(pc.equal(array, zero), zero, array)
    nan = pa.scalar(float("nan"), array.type)
    return pc.if_else(pc.is_nan(array), nan, array)


def _value_codes(array: pa.Array, identical: bool) -> _Codes:
    kind = array.type
    if is_variant(kind):
        return _value_codes(identities(array), identical)
    if pa.types.is_dictionary(kind):
        return _value_codes(array.dictionary_decode(), identical)
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64)
    if pa.types.is_struct(kind):
        parts = [array.is_null(), *array.flatten()]
        return row_codes(parts, len(array), identical=identical)
    if pa.types.is_map(kind):
        return _map_codes(array, identical)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        starts, ends = _offsets(array)
        return _sequence_codes(array, starts, ends, _value_codes(array.values, identical))
    if pa.types.is_nested(kind):
        raise TypeError(f"rows with a column of type {kind} cannot be compared")
    indices = _canonical(array, identical).dictionary_encode().indices
    return np.asarray(pc.fill_null(indices.cast(pa.int64()), -1))


def _pair_codes(left: _Codes, right: _Codes) -> _Codes:
    low, high = right.min(initial=0), right.max(initial=0)
    width = int(high - low) + 1
    if int(np.abs(left).max(initial=0)) < (2**62) // width:
        return _dense(left * width + (right - low))
    return _dense(_dense(left) * width + (right - low))


def _dense(codes: _Codes) -> _Codes:
    indices = pa.array(codes).dictionary_encode().indices
    return np.asarray(indices.cast(pa.int64()))


def _offsets(array: pa.Array) -> tuple[_Codes, _Codes]:
    """Return where each row's elements start and end in the array's values; NULL rows are empty."""
    offsets = np.asarray(array.offsets).astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:].copy()
    missing = np.asarray(array.is_null())
    ends[missing] = starts[missing]
    return starts, ends


def _sequence_codes(array: pa.Array, starts: _Codes, ends: _Codes, values: _Codes) -> _Codes:
    """Code lists by the bytes of their elements' codes."""
    lengths = ends - starts
    picks = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    flat = np.ascontiguousarray(values[picks + np.arange(len(picks))], dtype=np.int64)
    bounds = np.concatenate(([0], np.cumsum(lengths))) * 8
    blobs = pa.Array.from_buffers(
        pa.large_binary(),
        len(array),
        [None, pa.py_buffer(bounds.astype(np.int64)), pa.py_buffer(flat)],
    )
    return row_codes([array.is_null(), blobs], len(array))


def _map_codes(array: pa.Array, identical: bool) -> _Codes:
    starts, ends = _offsets(array)
    keys = _value_codes(array.keys, identical)
    entries = _pair_codes(keys, _value_codes(array.items, identical))
    if identical:
        return _sequence_codes(array, starts, ends, entries)
    lengths = ends - starts
    rows = np.repeat(np.arange(len(array)), lengths)
    picks = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    picks = picks + np.arange(len(picks))
    order = np.lexsort((keys[picks], rows))
    ordered = entries[picks][order]
    new_ends = np.cumsum(lengths)
    return _sequence_codes(array, new_ends - lengths, new_ends, ordered)
