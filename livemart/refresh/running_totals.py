"""Adds up running totals of rows in memory: rows that leave their frame are subtracted.

Used for each group of changed keys. Exact, or left to the region.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from livemart.arrow.bags import matching_rows
from livemart.arrow.exact_numbers import Whole, at_scale, from_whole, to_whole, totals_so_far
from livemart.arrow.sum_limits import SumLimits
from livemart.plan.strategies.running import Total, not_carried_on

# Every number of so many digits fits 64 bits.
_MOST_DIGITS = 18
_MOST_ROWS = 2**63

_Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Starts:
    """Where each key's rows start to differ, and the row before.

    Arrays of one element per key; times in microseconds.

    Attributes:
        keys: distinct.
        low: the first time that differs.
        high: the last time that may differ.
        since: of the last row before `low`.
        has_since: False if none is known: the key's frames are added up from their beginning.
        carried: the totals of that row, one array per total; NULL where none was found.
    """

    keys: tuple[pa.Array, ...]
    low: _Numbers
    high: _Numbers
    since: _Numbers
    has_since: _Mask
    carried: tuple[pa.Array, ...]

    def without_past(self, keys: _Mask) -> Starts:
        """Return the starts, some of the keys without the row before."""
        return replace(self, has_since=self.has_since & ~keys)

    def first(self, longest: int) -> _Numbers:
        """Return the time after which rows arrive in the frames, `longest` the widest of them."""
        return np.where(self.has_since, self.since, self.low - longest - 1)


def running_rows(
    totals: tuple[Total, ...],
    types: tuple[pa.DataType, ...],
    limits: tuple[SumLimits, ...],
    starts: Starts,
    keys: tuple[pa.Array, ...],
    times: _Numbers,
    arguments: tuple[pa.Array | None, ...],
) -> tuple[_Mask, tuple[pa.Array, ...], _Mask]:
    """Return the running totals of the rows that may differ.

    Rows are given by column: at least those that arrive in, or leave, a frame from each key's start
    on.

    Args:
        totals: the columns to compute.
        types: of each.
        limits: what each is worth.
        starts: by key.
        keys: of each row, in the types of the keys of `starts`.
        times: of each row, in microseconds.
        arguments: what each total sums; None for COUNT(*).

    Returns:
        Which rows may differ, each total of those, and which keys are in doubt. A key is in doubt
        if a frame adds up to zero without a value in its own row, and may hold nothing but NULL.
        Such keys must start with their frames.

    Raises:
        Inapplicable: a total does not fit its type, or Spark may have lost one on the way to it.
    """
    key, is_known = matching_rows(starts.keys, keys)
    high = starts.high[key]
    first = starts.first(max(total.before for total in totals))[key]
    arrives = is_known & (times > first) & (times <= high)
    shown = arrives & (times >= starts.low[key])
    shown_key = key[shown]
    is_doubtful = np.zeros(len(starts.low), dtype=bool)
    sums: dict[int, pa.Array] = {}
    for before in {total.before for total in totals}:
        lowest = np.where(starts.has_since[key], starts.since[key] - before, first + 1)
        leaves = is_known & (times >= lowest) & (times < high - before)
        moves = _Moves(
            np.concatenate([key[arrives], key[leaves], np.flatnonzero(starts.has_since)]),
            np.concatenate(
                [times[arrives], times[leaves] + before + 1, starts.since[starts.has_since]]
            ),
        )
        at = np.flatnonzero(shown[arrives])
        for index, total in enumerate(totals):
            if total.before != before:
                continue
            scale = types[index].scale if pa.types.is_decimal(types[index]) else 0
            values = _values(arguments[index], len(times), scale)
            carried = to_whole(starts.carried[index].filter(pa.array(starts.has_since)))
            moved = np.concatenate([values[arrives], -values[leaves], carried])
            summed = moves.sums(moved, at)
            if not (_is_known(limits[index], summed) and _is_known(limits[index], moved)):
                raise not_carried_on("a total may have been lost on the way to it")
            is_null = np.zeros(len(summed), dtype=bool)
            argument = arguments[index]
            if argument is not None:
                # A frame holds its own row: with a value there, its total is not NULL.
                is_missing = np.asarray(argument.is_null())
                is_null = is_missing[shown] & (summed == 0).astype(bool)
                is_doubtful[shown_key[is_null & starts.has_since[shown_key]]] = True
                if is_null.any():
                    ones = (~is_missing).astype(np.int64)
                    none = np.zeros(len(carried), dtype=np.int64)
                    counts = moves.sums(np.concatenate([ones[arrives], -ones[leaves], none]), at)
                    is_null &= (counts == 0).astype(bool)
            column = from_whole(summed, types[index], is_null)
            if column is None:
                raise not_carried_on("a total does not fit its type")
            sums[index] = column
    return shown, tuple(sums[index] for index in range(len(totals))), is_doubtful


def _is_known(limits: SumLimits, totals: Whole) -> bool:
    # How many rows a carried total is of, is not known.
    return bool(limits.is_known(totals, _MOST_ROWS).all())


class _Moves:
    """Rows that enter and leave, by key and time; moves of one instant count together."""

    def __init__(self, key: _Numbers, at: _Numbers) -> None:
        self._order = np.lexsort((at, key))
        key, at = key[self._order], at[self._order]
        size = len(key)
        is_next_key = np.ones(size, dtype=bool)
        is_next_key[1:] = key[1:] != key[:-1]
        is_next = is_next_key.copy()
        is_next[1:] |= at[1:] != at[:-1]
        places = np.arange(size)
        # By place in the order: where its key begins, and the last move of its instant.
        self._begin = np.flatnonzero(is_next_key)[np.cumsum(is_next_key) - 1]
        ends = np.append(np.flatnonzero(is_next)[1:], size) - 1
        self._end = ends[np.cumsum(is_next) - 1]
        self._place = np.empty(size, dtype=np.int64)
        self._place[self._order] = places

    def sums(self, values: Whole, moves: _Numbers) -> Whole:
        """Return, for some of the moves, the sum of their key's values until then."""
        so_far = np.concatenate([[0], totals_so_far(values[self._order])])
        place = self._place[moves]
        summed: Whole = so_far[self._end[place] + 1] - so_far[self._begin[place]]
        return summed


def _values(argument: pa.Array | None, size: int, scale: int) -> Whole:
    if argument is None:
        return np.full(size, 10**scale, dtype=object if scale > _MOST_DIGITS else np.int64)
    return at_scale(to_whole(argument), argument.type, scale)
