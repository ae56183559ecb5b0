"""Sorts the records of a large delivery on disk, to be read by ranges of keys.

Used where records have keys. Each portion is sorted and written as it arrives. Once all portions
are written, a range of keys is read from all of them together: every version of a key is in one
range.
Source: external merge sort (Knuth, The Art of Computer Programming, volume 3, 5.4), whose last pass
is cut at sampled splitters as in a sample sort.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

_ARRIVED = "__arrived__"
_SAMPLED = 64

_Key = tuple[Any, ...]


class KeyOrder:
    """Portions of records, each sorted by key in a file of `folder`.

    Args:
        folder: made when the first portion comes; the caller removes it.
        keys: columns that are never NULL.
        rows_per_range: about how many rows a range holds.
    """

    def __init__(self, folder: Path, keys: Sequence[str], rows_per_range: int) -> None:
        self._folder = folder
        self._keys = list(keys)
        self._rows_per_range = rows_per_range
        self._files: list[Path] = []
        self._schemas: list[pa.Schema] = []
        self._samples: list[_Key] = []
        self._count = 0

    def add(self, rows: pa.Table) -> None:
        """Take the next records, in the order in which they arrived."""
        if not rows.num_rows:
            return
        arrived = pa.array(np.arange(self._count, self._count + rows.num_rows))
        self._count += rows.num_rows
        rows = rows.append_column(_ARRIVED, arrived)
        rows = rows.sort_by([(name, "ascending") for name in self._keys]).combine_chunks()
        keys = rows.select(self._keys).take(pa.array(range(0, rows.num_rows, _SAMPLED)))
        self._samples += zip(*(column.to_pylist() for column in keys.columns), strict=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{len(self._files)}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._files.append(path)
        self._schemas.append(rows.schema)

    def ranges(self) -> Iterator[pa.Table]:
        """Yield the records by ranges of keys, those of a range in the order of their arrival.

        A column that only later portions have is NULL in earlier ones.
        """
        if not self._files:
            return
        schema = pa.unify_schemas(self._schemas)
        splitters = self._splitters()
        mappings = [_mapped(path) for path in self._files]
        portions = [pa.ipc.open_file(pa.py_buffer(mapping)).read_all() for mapping in mappings]
        with_ends = [
            (portion, [0, *_positions(portion.select(self._keys), splitters), portion.num_rows])
            for portion in portions
        ]
        for number in range(len(splitters) + 1):
            pieces = [
                portion.slice(ends[number], ends[number + 1] - ends[number])
                for portion, ends in with_ends
            ]
            rows = pa.concat_tables(
                [schema.empty_table(), *pieces], promote_options="default"
            ).combine_chunks()
            for mapping in mappings:
                # Pages that were read stay with the system, and are no memory of this process.
                mapping.madvise(mmap.MADV_DONTNEED)
            if rows.num_rows:
                yield rows.sort_by(_ARRIVED).drop_columns([_ARRIVED]).combine_chunks()

    def _splitters(self) -> list[_Key]:
        """Return keys that cut all records into ranges of about one size, in ascending order."""
        # A value that does not equal itself (NaN) has no place among others.
        samples = sorted(key for key in self._samples if all(value == value for value in key))
        ranges = -(-self._count // self._rows_per_range)
        places = (number * len(samples) // ranges for number in range(1, ranges))
        return list(dict.fromkeys(samples[place] for place in places))


def _mapped(path: Path) -> mmap.mmap:
    """Return a file mapped into memory: a page is read when it is looked at."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _positions(keys: pa.Table, splitters: Sequence[_Key]) -> list[int]:
    """Return the position of each splitter in sorted keys."""
    columns = [column.chunk(0) for column in keys.columns]

    def key_at(position: int) -> _Key:
        return tuple(column[position].as_py() for column in columns)

    return [bisect_left(range(keys.num_rows), key, key=key_at) for key in splitters]
