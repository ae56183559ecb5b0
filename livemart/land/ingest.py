"""Hands records over to a source by its name: from a pipe, or from files anywhere.

Used by the command `ingest`. It reads the project's sources and needs no Spark. A pipe is read only
as fast as its records become durable, so the program that writes into it waits when the disk does.
Records in a file are durable and landed exactly once; those that wait in memory are not handed over
yet. The endpoint of HTTP names its files, and judges records, as this does.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import select
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.errors import ConfigError, ConfigErrors, SourceError, nearest
from livemart.land.hand_over import hand_over_below, hand_over_copy
from livemart.land.records.judge import Group, refused_by, verdict
from livemart.land.records.origin import Place
from livemart.land.records.parse import RECORD_FORMATS, LineFormat, parse_runs
from livemart.land.records.runs import Lines
from livemart.land.records.schema import RecordSchema
from livemart.land.sources.files.blocks import BYTE_ORDER_MARK
from livemart.land.sources.files.elements import Elements, as_lines, begins_array
from livemart.land.sources.files.names import name_for
from livemart.land.sources.files.parts import FilePart, content_of
from livemart.project.dbt import Dbt
from livemart.project.graph import Project, SourceTable
from livemart.project.sources import FILES_KIND
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from livemart.settings import Settings

_BLOCK_BYTES = 1 << 20
_LOOK_S = 0.2
_PLAIN = re.compile(r"[^A-Za-z0-9.-]+")
# No record that may land is longer; one that is, is cut, and refused in pieces.
MAX_SPOOL_BYTES = 8 << 20
_numbers = itertools.count(1)


def read_project(settings: Settings) -> Project:
    """Return the project as dbt parses it: nothing is compiled, and no Spark is needed.

    Raises:
        ConfigError: whatever keeps dbt from reading it; every mistake in what its `meta` says, as a
            source with a mistake would look like one that livemart does not land.
    """
    dbt = Dbt(
        settings.project_dir,
        settings.profiles_dir,
        target=settings.target,
        vars=settings.vars,
        warehouse=settings.warehouse,
    )
    project, mistakes = dbt.parse()
    if mistakes:
        raise ConfigErrors(mistakes)
    return project


def source_called(project: Project, name: str, format_name: str | None = None) -> SourceTable:
    """Return the source table that is called so by itself, with its source, or its schema.

    Raises:
        ConfigError: SOURCE_NOT_INGESTED, if there is none, more than one, or one that reads no
        files.
    """
    landed = [source for source in project.sources.values() if source.stream is not None]
    called = [source for source in landed if name in source.names]
    if len(called) != 1:
        full_names = sorted(f"{source.source_name}.{source.name}" for source in landed)
        names = [name for source in landed for name in source.names]
        count = "no source" if not called else f"{len(called)} sources"
        raise ConfigError(
            "SOURCE_NOT_INGESTED",
            f"{name}: {count} of that name{nearest(name, names) if not called else ''}",
            hint=f"livemart lands {', '.join(full_names)}"
            if full_names
            else "declare a source with `meta: {livemart: ...}`; docs/landing.md says how",
        )
    (source,) = called
    arrival, record_format = source.arrival, source.record_rules.format
    if arrival.kind != FILES_KIND:
        raise _not_ingested(
            source,
            f"found kind {arrival.kind}",
            "its records come from there; put them there, or declare another source of files",
        )
    if format_name is not None and format_name != record_format:
        raise _not_ingested(
            source,
            f"found format {record_format}, not {format_name}",
            f"declare `format: {format_name}`, or leave --format out",
        )
    try:
        name_for(arrival.path, "a")
    except ValueError as error:
        raise _not_ingested(
            source,
            f"path {error}",
            "a name is used once, so records of a pipe need different names",
        ) from error
    return source


def _not_ingested(source: SourceTable, detail: str, hint: str) -> ConfigError:
    where = f"{source.file}: {source.relation}"
    return ConfigError("SOURCE_NOT_INGESTED", f"{where}: {detail}", hint=hint)


def hand_over_input(
    landing: StoragePlace,
    source: SourceTable,
    descriptor: int,
    counts: SpoolCounts,
    stop: Event,
    *,
    every: float,
    follows: bool = False,
    judges: bool = False,
) -> None:
    """Hand over the records of a pipe or file, until its end or a stop.

    Raises:
        ConfigError: SOURCE_NOT_INGESTED, if the format has no lines.
        SourceError: LANDING_UNWRITABLE.
    """
    record_format = source.record_rules.format
    if not isinstance(RECORD_FORMATS[record_format], LineFormat):
        raise _not_ingested(
            source,
            f"found format {record_format}, which has no lines",
            "hand its files over by name: livemart ingest SOURCE FILE...",
        )
    spool = Spool(landing, source, counts, judges=judges)
    with _writing():
        read_into(spool, descriptor, stop, every=every, follows=follows)


def read_into(
    spool: Spool,
    descriptor: int,
    stop: Event,
    *,
    every: float,
    follows: bool = False,
) -> bool:
    """Read until the end, or until a stop; return whether the end was reached.

    At the end the last record needs no line end; after a stop an incomplete record is not handed
    over.

    Args:
        spool: takes what is read.
        descriptor: of the pipe or file.
        stop: is set to end the reading.
        every: seconds that a whole record waits at most.
        follows: at the end of a file wait for it to grow.
    """
    grows = follows and stat.S_ISREG(os.fstat(descriptor).st_mode)
    while not stop.is_set():
        since = spool.waiting_since
        if since is not None and time.monotonic() - since >= every:
            spool.flush()
        if not select.select([descriptor], [], [], min(_LOOK_S, every))[0]:
            continue
        if block := os.read(descriptor, _BLOCK_BYTES):
            spool.write(block)
        elif grows:
            stop.wait(_LOOK_S)
        else:
            spool.close()
            return True
    spool.flush()
    return False


def hand_over_files(
    landing: StoragePlace,
    source: SourceTable,
    files: Sequence[str],
    counts: SpoolCounts,
    *,
    judges: bool = False,
) -> None:
    """Hand over copies of files; one that was handed over before is passed over.

    Raises:
        SourceError: SOURCE_FILE_UNREADABLE, for all of them at once, before any is handed over;
            LANDING_UNWRITABLE.
    """
    troubles = [trouble for name in files if (trouble := _trouble(Path(name)))]
    if troubles:
        raise SourceError(
            "SOURCE_FILE_UNREADABLE",
            "; ".join(troubles),
            hint="nothing was handed over; name files that can be read",
        )
    group = group_of(source)
    for path in map(Path, files):
        name = name_for(source.arrival.path, _stem_of(path))
        with _writing():
            if not hand_over_copy(landing, name, path):
                continue
        counts.files += 1
        counts.size += path.stat().st_size
        for table in FilePart(name, path).read(group):
            count_judged(table, counts)
    if not judges:
        counts.refused.clear()


def _trouble(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return None


@contextmanager
def _writing() -> Iterator[None]:
    """Turn a landing folder that may not be written into SourceError LANDING_UNWRITABLE."""
    try:
        yield
    except PermissionError as error:
        raise SourceError(
            "LANDING_UNWRITABLE",
            f"{error.filename}: {error.strerror}",
            hint="give livemart's user the right to write to the landing folder; records that were "
            "reported as handed over are stored",
        ) from error


def _stem_of(path: Path) -> str:
    """Return the name of a file with a hash of its content."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    plain = _PLAIN.sub("-", path.name.split(".")[0]).strip("-.") or "file"
    return f"{plain}-{digest[:16]}"


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
        if self.source.record_rules.format == "json" and begins_array(head):
            self._elements = Elements()
        return head

    def _whole(self) -> int:
        """Return where the last whole record ends."""
        if self.source.record_rules.format != "csv":
            return self._waiting.rfind(b"\n") + 1
        if not self._header:
            # Blank lines before a header are none.
            self._waiting = self._waiting.lstrip()
            end = _end_of_first(self._waiting)
            self._header = bytes(self._waiting[:end])
            del self._waiting[:end]
        return _end_of_csv(self._waiting)

    def _hand_over(self, end: int) -> None:
        data = bytes(self._waiting[:end])
        del self._waiting[:end]
        self.waiting_since = self.clock() if self._waiting else None
        record_format = self.source.record_rules.format
        if not any(records_of(data, record_format)):
            return
        name = name_for(self.source.arrival.path, new_stem())
        content = content_of(self._header + data, record_format)
        hand_over_below(self.landing, name, content)
        self.counts.files += 1
        self.counts.size += len(data)
        if self.judges:
            group, place = group_of(self.source), Place(name)
            lines = list(enumerate((self._header + data).split(b"\n"), 1))
            for table in parse_runs(group, place, [Lines(lines)]):
                count_judged(table, self.counts)
        else:
            count = sum(1 for _ in records_of(self._header + data, record_format))
            self.counts.records += count - (record_format == "csv")


def records_of(data: bytes, record_format: str) -> Iterator[tuple[int, bytes]]:
    """Yield the records of lines, each with the number of its first line."""
    line_format = RECORD_FORMATS[record_format]
    assert isinstance(line_format, LineFormat), record_format
    return line_format.split(enumerate(data.split(b"\n"), 1))


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
