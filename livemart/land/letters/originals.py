"""Gives the records of dead letters back as they arrived.

Used by the export and the re-drive of letters. A letter keeps a record up to a limit, as text. A
record that is longer, or is no text, is read again from its file, if that still exists.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from livemart.land.records.csv_rows import split_records
from livemart.land.records.judge import kept_text
from livemart.land.records.origin import read_origin
from livemart.land.records.parse import RECORD_FORMATS, LineFormat
from livemart.land.records.runs import CutLine
from livemart.land.sources.files.elements import is_array, read_elements
from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.lines import read_lines
from livemart.project.graph import Format


class Originals:
    """The records of letters of one source with a format of lines.

    `letters`: rows, all of this source.
    """

    def __init__(
        self, landing: Path, record_format: Format, letters: Iterable[Mapping[str, Any]]
    ) -> None:
        self._folder = LandingFolder(landing)
        self._format = record_format
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
        if record is None or isinstance(record, CutLine) or kept_text(record) != letter["record"]:
            return None
        return record

    def header(self, letter: Mapping[str, Any]) -> bytes | None:
        """Return the header that a record needs: empty for JSON and text, None if it is gone."""
        line_format = RECORD_FORMATS[self._format]
        if not isinstance(line_format, LineFormat) or not line_format.has_header:
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
        path = self._folder.locate(name)
        if path is None or not path.is_file():
            return iter(())
        if self._format == "json" and is_array(path):
            runs = read_elements(path)
        else:
            runs = read_lines(path)
        lines = (line for run in runs for line in run.lines)
        return split_records(lines) if self._format == "csv" else lines


def _is_whole(letter: Mapping[str, Any]) -> bool:
    """Return whether a letter keeps its whole record unchanged."""
    record = letter["record"]
    return record is not None and len(str(record).encode()) == letter["record_bytes"]
