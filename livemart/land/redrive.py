"""Hands the records of dead letters over again, each exactly once.

Used by `dead-letters redrive`, after a rule or the records were mended. The records are written
down first, then their letters are marked, then the file appears below the landing folder. So a
re-drive that was cut off is finished by the next one.

A letter keeps a record up to a limit, as text. A record that is longer, or is no text, is read
again from its file, if that still exists.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from livemart.delta.warehouse import Warehouse
from livemart.failpoints import failpoint
from livemart.land.hand_over import hand_over_below
from livemart.land.letters.redriven import LETTER_KEY, letter_key, mark
from livemart.land.records.judge import KEPT_RECORD_BYTES, kept_text
from livemart.land.records.origin import read_origin
from livemart.land.records.parse import RECORD_FORMATS, LineFormat
from livemart.land.records.runs import CutLine, Lines
from livemart.land.sources.files.bucket import on_this_machine, open_landing
from livemart.land.sources.files.elements import is_array, read_elements
from livemart.land.sources.files.lines import read_lines
from livemart.land.sources.files.names import name_for
from livemart.land.sources.files.parts import content_of
from livemart.project.graph import Format, SourceTable
from livemart.project.sources import FILES_KIND
from livemart.state.atomic_files import read_file, remove_state_file, replace_file
from livemart.state.places import LocalFolder, StateFolder
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

# Rows of one file.
_FILE_LETTERS = 50_000


@dataclass
class RedriveCounts:
    """The counts of a re-drive. `left`: letters that it did not touch, by reason."""

    records: int = 0
    files: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Redriven:
    """One record to hand over: the row of its letter, and its content, which may be mended."""

    letter: Mapping[str, Any]
    content: bytes
    header: bytes


class Redrive:
    """The re-drives of one warehouse; only one process makes them at a time."""

    def __init__(self, warehouse: Warehouse, landing: StoragePlace) -> None:
        self._warehouse = warehouse
        self._landing = landing
        self._folder = StateFolder(warehouse.place).redrives
        self._lock = LocalFolder(warehouse.place).redrive_lock

    @contextmanager
    def begun(self) -> Iterator[Redrive]:
        """Wait for any other re-drive, and finish one that was cut off."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in open_storage(self._folder).names():
                if name.endswith(".json"):
                    self._finish(self._folder / name)
            yield self

    def redrive(
        self,
        sources: Mapping[str, SourceTable],
        letters: Mapping[str, Sequence[Mapping[str, Any]]],
        contents: Mapping[tuple[Any, ...], tuple[bytes, bytes | None]],
    ) -> RedriveCounts:
        """Hand over the records of letters; call it within `begun`.

        `letters`: rows that are not marked, by their table; `contents`: as `mended` takes them.
        """
        counts = RedriveCounts()
        for relation, rows in letters.items():
            ready = mended_and_closed(self._landing, sources, rows, contents, counts)
            for source, records in ready.items():
                counts.files += self._hand_over(relation, sources[source], records)
                counts.records += len(records)
        return counts

    def dismiss(self, letters: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Mark letters as done, by their table, whatever their records; call it within `begun`."""
        for relation, rows in letters.items():
            mark(self._warehouse, relation, rows, None, datetime.now(UTC))

    def _hand_over(self, relation: str, source: SourceTable, records: Sequence[Redriven]) -> int:
        """Mark letters of table `relation` and hand their records over; return how many files."""
        groups: dict[bytes, list[Redriven]] = {}
        for record in records:
            groups.setdefault(record.header, []).append(record)
        count = 0
        for header, members in groups.items():
            for start in range(0, len(members), _FILE_LETTERS):
                part = members[start : start + _FILE_LETTERS]
                self._finish(self._write_down(relation, source, header, part))
                count += 1
        return count

    def _write_down(
        self, relation: str, source: SourceTable, header: bytes, records: Sequence[Redriven]
    ) -> StoragePlace:
        # A header that was refused has a letter, too, and is no row under itself.
        rows = (record.content for record in records if record.content != header)
        lines = [*([header] if header else []), *rows]
        content_lines = b"".join(line + b"\n" for line in lines)
        data = content_of(content_lines, source.record_rules.format)
        keys = [letter_key(record.letter) for record in records]
        digest = hashlib.sha256(repr(sorted(map(repr, keys))).encode() + data).hexdigest()[:24]
        content = {
            "relation": relation,
            "name": name_for(source.arrival.path, f"redrive-{digest}"),
            "redriven_at": datetime.now(UTC).isoformat(),
            "letters": [
                [key.isoformat() if isinstance(key, datetime) else key for key in letter]
                for letter in keys
            ],
            "data": base64.b64encode(data).decode(),
        }
        path = self._folder / f"{digest}.json"
        replace_file(path, json.dumps(content))
        return path

    def _finish(self, path: StoragePlace) -> None:
        failpoint("redrive.before_mark")
        content = json.loads(read_file(path))
        letters = [dict(zip(LETTER_KEY, letter, strict=True)) for letter in content["letters"]]
        for letter in letters:
            letter["landed_at"] = datetime.fromisoformat(letter["landed_at"])
        redriven_at = datetime.fromisoformat(content["redriven_at"])
        mark(self._warehouse, content["relation"], letters, content["name"], redriven_at)
        failpoint("redrive.before_hand_over")
        # It may have been handed over before the one that did it was cut off.
        with suppress(FileExistsError):
            hand_over_below(self._landing, content["name"], base64.b64decode(content["data"]))
        failpoint("redrive.before_end")
        remove_state_file(path)


def mended(
    landing: StoragePlace,
    sources: Mapping[str, SourceTable],
    letters: Sequence[Mapping[str, Any]],
    contents: Mapping[tuple[Any, ...], tuple[bytes, bytes | None]],
    counts: RedriveCounts,
) -> dict[str, list[Redriven]]:
    """Return the letters to hand over, by source; the others are counted with their reason.

    `contents`: record and header of letters that were mended by hand, by their key; `counts` are
    added to.
    """
    by_source: dict[str, list[Mapping[str, Any]]] = {}
    for letter in letters:
        by_source.setdefault(letter["source"], []).append(letter)
    ready: dict[str, list[Redriven]] = {}
    for relation, members in by_source.items():
        if (why := _why_not(sources.get(relation))) is not None:
            counts.left[f"{relation}: {why}"] += len(members)
            continue
        originals = Originals(landing, sources[relation].record_rules.format, members)
        for letter in members:
            edit = contents.get(letter_key(letter))
            content = edit[0] if edit else originals.record(letter)
            header = edit[1] if edit and edit[1] is not None else originals.header(letter)
            if letter["record"] is None:
                counts.left[f"{relation}: the letter is for a whole file or range"] += 1
            elif content is None:
                counts.left[
                    f"{relation}: the record is not kept in full, and its file was removed"
                ] += 1
            elif header is None:
                counts.left[f"{relation}: the file with the header was removed"] += 1
            elif b"\n" in content and sources[relation].record_rules.format == "text":
                counts.left[f"{relation}: the record has a line end"] += 1
            else:
                if sources[relation].record_rules.format == "json":
                    # An element of an array may be written over several lines.
                    content = content.replace(b"\n", b" ")
                ready.setdefault(relation, []).append(Redriven(letter, content, header))
    return ready


def mended_and_closed(
    landing: StoragePlace,
    sources: Mapping[str, SourceTable],
    letters: Sequence[Mapping[str, Any]],
    contents: Mapping[tuple[Any, ...], tuple[bytes, bytes | None]],
    counts: RedriveCounts,
) -> dict[str, list[Redriven]]:
    """Return what `mended` does, but for records of CSV with a quote that is not closed.

    Together two of them could be one row of two lines.
    """
    closed = {}
    for relation, ready in mended(landing, sources, letters, contents, counts).items():
        closed[relation] = [it for it in ready if not it.header or it.content.count(b'"') % 2 == 0]
        if open_count := len(ready) - len(closed[relation]):
            reason = f"{relation}: a quote is not closed: correct the record in an export"
            counts.left[reason] += open_count
    return closed


def _why_not(source: SourceTable | None) -> str | None:
    """Return why no record can be handed over to a source, None if it can."""
    if source is None or source.stream is None:
        return "the project lands no such source any more"
    arrival, record_format = source.arrival, source.record_rules.format
    if arrival.kind != FILES_KIND:
        return f"its records come from kind {arrival.kind}: put them there"
    if not isinstance(RECORD_FORMATS[record_format], LineFormat):
        return f"a file of {record_format} is not written here: `ingest` a corrected one"
    try:
        name_for(arrival.path, "a")
    except ValueError as error:
        return str(error)
    return None


class Originals:
    """The records of letters of one source with a format of lines.

    `letters`: rows, all of this source.
    """

    def __init__(
        self, landing: StoragePlace, record_format: Format, letters: Iterable[Mapping[str, Any]]
    ) -> None:
        self._folder = open_landing(landing)
        line_format = RECORD_FORMATS[record_format]
        assert isinstance(line_format, LineFormat), record_format
        self._format = line_format
        self._headers: dict[str, bytes | None] = {}
        needed: dict[str, set[int]] = {}
        for letter in letters:
            if not _is_whole(letter) and (origin := read_origin(letter["origin"])):
                needed.setdefault(origin.place.name, set()).add(origin.number)
        self._read = {
            (name, number): record
            for name, numbers in needed.items()
            for number, record in self._records(name, numbers)
        }

    def record(self, letter: Mapping[str, Any]) -> bytes | None:
        """Return the record of a letter, None if it is not there any more."""
        if letter["record"] is None:
            return None
        if _is_whole(letter):
            return str(letter["record"]).encode()
        origin = read_origin(letter["origin"])
        record = self._read.get((origin.place.name, origin.number)) if origin else None
        # A file that was changed since, or a record that no memory holds.
        if record is None or isinstance(record, CutLine):
            return None
        is_same = (kept_text(record), len(record)) == (letter["record"], letter["record_bytes"])
        return record if is_same else None

    def header(self, letter: Mapping[str, Any]) -> bytes | None:
        """Return the header that a record needs: empty for JSON and text, None if it is gone."""
        if not self._format.has_header:
            return b""
        origin = read_origin(letter["origin"])
        if origin is None:
            return None
        name = origin.place.name
        if name not in self._headers:
            records = self._numbered(name)
            self._headers[name] = next((record for _, record in records), None)
        return self._headers[name]

    def _records(self, name: str, numbers: set[int]) -> Iterator[tuple[int, bytes]]:
        last = max(numbers)
        until = itertools.takewhile(lambda numbered: numbered[0] <= last, self._numbered(name))
        return ((number, record) for number, record in until if number in numbers)

    def _numbered(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield the records of a file with their numbers; none if it is gone."""
        place = self._folder.locate(name)
        if place is None:
            return
        try:
            with on_this_machine(place) as path:
                is_of_elements = self._format.may_be_array and is_array(path)
                runs = read_elements(path) if is_of_elements else read_lines(path)
                broken: list[tuple[int, bytes]] = []
                yield from self._format.split(_whole_lines(runs, broken))
                # As landing refuses it: as it is.
                yield from broken
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return


def _whole_lines(
    runs: Iterable[Lines], broken: list[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file; the last one goes to `broken` if the file ends too early."""
    for run in runs:
        if run.problem:
            broken += run.lines
        else:
            yield from run.lines


def _is_whole(letter: Mapping[str, Any]) -> bool:
    """Return whether a letter keeps its whole record unchanged.

    Escapes can make the text of a part as long as the whole record.
    """
    record, size = letter["record"], letter["record_bytes"]
    return record is not None and len(str(record).encode()) == size <= KEPT_RECORD_BYTES
