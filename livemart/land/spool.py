"""Hands a stream of records over to a source, in files of whole records.

Used by `ingest` and by its HTTP endpoint. Records in a file are durable and landed exactly once.
Records that wait in memory are not handed over yet, and their sender can be made to wait.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from livemart.land.hand_over import hand_over_below
from livemart.land.records.csv_rows import split_records
from livemart.land.records.judge import Group, refused_by, verdict
from livemart.land.records.origin import Place
from livemart.land.records.parse import parse_runs
from livemart.land.records.runs import Lines
from livemart.land.records.schema import RecordSchema
from livemart.land.sources.files.blocks import BYTE_ORDER_MARK
from livemart.land.sources.files.elements import Elements, as_lines
from livemart.land.sources.files.names import name_for
from livemart.project.graph import SourceTable
from livemart.storage.location import StoragePlace

# No record that may land is longer; one that is, is cut, and refused in pieces.
MAX_SPOOL_BYTES = 8 << 20
_numbers = itertools.count(1)


@dataclass
class SpoolCounts:
    """The counts of a hand-over. `refused`: how many records will be dead letters, by reason."""

    records: int = 0
    size: int = 0
    files: int = 0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class Spool:
    """Collects bytes, and hands whole records over as files.

    Args:
        landing: the landing folder.
        source: of kind files, and of a format of lines.
        counts: are added to.
        max_bytes: of a file; what waits in memory is hardly more.
        judges: also tell which records will be dead letters, as landing will judge them.
        clock: seconds that only rise.
    """

    landing: StoragePlace
    source: SourceTable
    counts: SpoolCounts
    _: KW_ONLY
    max_bytes: int = MAX_SPOOL_BYTES
    judges: bool = False
    clock: Callable[[], float] = time.monotonic
    waiting_since: float | None = field(default=None, init=False)
    _waiting: bytearray = field(default_factory=bytearray, init=False)
    _elements: Elements | None = field(default=None, init=False)
    _is_begun: bool = field(default=False, init=False)
    _header: bytes = field(default=b"", init=False)

    def write(self, data: bytes) -> None:
        """Take bytes as they come; returns when there is room for more."""
        if not self._is_begun:
            data = self._begin(data)
        if self._elements is not None:
            data = as_lines(self._elements.read(data))
        if data and self.waiting_since is None:
            self.waiting_since = self.clock()
        self._waiting += data
        if len(self._waiting) >= self.max_bytes:
            self.flush()

    def flush(self) -> None:
        """Hand over the records that are whole; they are durable when this returns."""
        end = self._whole()
        if not end and len(self._waiting) >= self.max_bytes:
            # A quote that is never closed, or no line end: it is refused when it lands.
            end = self._waiting.rfind(b"\n") + 1 or len(self._waiting)
        self._hand_over(end)

    def close(self) -> None:
        """Hand over all that waits: the last record needs no line end."""
        if self._elements is not None:
            number, rest = self._elements.end()
            self._waiting += as_lines([(number, rest)] if rest.strip() else [])
            self._elements = None
        self._whole()
        self._hand_over(len(self._waiting))

    def _begin(self, data: bytes) -> bytes:
        """Look at how the stream begins: with a mark to drop, with an array."""
        self._waiting += data
        head = bytes(self._waiting).removeprefix(BYTE_ORDER_MARK)
        if not head.strip():
            return b""
        self._is_begun = True
        self._waiting.clear()
        if self.source.record_rules.format == "json" and head.lstrip()[:1] == b"[":
            self._elements = Elements()
        return head

    def _whole(self) -> int:
        """Return where the last whole record ends."""
        if self.source.record_rules.format != "csv":
            return self._waiting.rfind(b"\n") + 1
        if not self._header:
            end = _end_of_first(self._waiting)
            self._header = bytes(self._waiting[:end])
            del self._waiting[:end]
        return _end_of_csv(self._waiting)

    def _hand_over(self, end: int) -> None:
        data = bytes(self._waiting[:end])
        del self._waiting[:end]
        self.waiting_since = self.clock() if self._waiting else None
        if not data.strip():
            return
        name = name_for(self.source.arrival.path, new_stem())
        hand_over_below(self.landing, name, self._header + data)
        self.counts.files += 1
        self.counts.size += len(data)
        lines = list(enumerate((self._header + data).split(b"\n"), 1))
        if self.judges:
            group, place = group_of(self.source), Place(name)
            for table in parse_runs(group, place, [Lines(lines)]):
                count_judged(table, self.counts)
        elif self.source.record_rules.format == "csv":
            self.counts.records += sum(1 for _ in split_records(lines)) - 1
        else:
            self.counts.records += sum(1 for _, line in lines if line.strip())


def group_of(source: SourceTable) -> Group:
    """Return the rules by which landing judges records of a source that arrive now."""
    return Group.of([source], RecordSchema.of(source), datetime.now(UTC))


def count_judged(table: pa.Table, counts: SpoolCounts) -> None:
    """Count judged records: all of them, and those that will be dead letters."""
    counts.records += table.num_rows
    counts.refused.update(refused_by(table, 0).column(verdict("code", 0)).to_pylist())


def new_stem() -> str:
    """Return a name that no other file of this host has."""
    return f"ingest-{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}-{next(_numbers)}"


def _line_ends(data: bytes | bytearray) -> Iterator[tuple[int, bool]]:
    """Yield where each line ends, and whether no quote is open there."""
    start, quotes = 0, 0
    while (end := data.find(b"\n", start) + 1) > 0:
        quotes += data.count(b'"', start, end)
        yield end, quotes % 2 == 0
        start = end


def _end_of_first(data: bytes | bytearray) -> int:
    ends = (end for end, is_closed in _line_ends(data) if is_closed)
    return next(ends, data.find(b"\n") + 1)


def _end_of_csv(data: bytes | bytearray) -> int:
    """Return where the last record ends; lines behind a stray quote have no certain end."""
    return max((end for end, is_closed in _line_ends(data) if is_closed), default=0)
