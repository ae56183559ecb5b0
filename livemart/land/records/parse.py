"""Parses a file, or a part of one, to judged rows.

Used by the driver for a micro-batch that it holds, and by Spark's workers for a larger one: one
function, so that both land the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from livemart.land.files.blocks import CutLine
from livemart.land.files.elements import is_array, read_elements
from livemart.land.files.folder import Lines, Span, read_lines
from livemart.land.reasons import LetterReason
from livemart.land.records.csv_rows import Header, read_csv_rows, read_header, split_records
from livemart.land.records.json_lines import read_json_lines
from livemart.land.records.judge import Chunk, Group, Refused, judge, to_rows
from livemart.land.records.values import MalformedError

_RUN_RECORDS = 8_192


def parse_file(group: Group, path: Path, name: str, span: Span | None = None) -> Iterator[pa.Table]:
    """Yield the records of a file as tables of `group.judged`: good and refused ones.

    Args:
        group: format, columns and rules.
        path: where the file is.
        name: what `_origin` calls it.
        span: the part to read; the whole file if None.
    """
    for chunk in FORMAT_READERS[group.format].read(group, path, span or Span()):
        yield judge(group, name, chunk)


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a format are read from a file.

    `read`: yields the records of a span; `is_whole`: whether the file must be read in one.
    """

    read: Callable[[Group, Path, Span], Iterator[Chunk]]
    is_whole: Callable[[Path], bool]


def _read_json(group: Group, path: Path, span: Span) -> Iterator[Chunk]:
    is_one_array = span.start == 0 and is_array(path)
    return _json_chunks(group, read_elements(path) if is_one_array else read_lines(path, span))


def _read_csv(group: Group, path: Path, span: Span) -> Iterator[Chunk]:
    return _csv_chunks(group, read_lines(path, span))


def _json_chunks(group: Group, runs: Iterator[Lines]) -> Iterator[Chunk]:
    for run in runs:
        if run.problem:
            yield _broken_end(group, run)
            continue
        lines = [(line, text) for line, raw in run.lines if (text := _stripped(raw))]
        for start in range(0, len(lines), _RUN_RECORDS):
            yield read_json_lines(group, lines[start : start + _RUN_RECORDS])


def _stripped(line: bytes) -> bytes:
    return line if isinstance(line, CutLine) else line.strip()


def _csv_chunks(group: Group, runs: Iterator[Lines]) -> Iterator[Chunk]:
    problems: list[Lines] = []

    def lines() -> Iterator[tuple[int, bytes]]:
        for run in runs:
            if run.problem:
                problems.append(run)
            else:
                yield from run.lines

    records = split_records(lines())
    header: Header | None = None
    if first := next(records, None):
        try:
            header = read_header(first[1], group.known_names)
        except MalformedError as error:
            yield _malformed(group, [first], f"header: {error}")
    while run_of := list(zip(range(_RUN_RECORDS), records, strict=False)):
        taken = [record for _, record in run_of]
        if header is None:
            yield _malformed(group, taken, "the file's header is malformed")
        else:
            yield read_csv_rows(group, header, taken)
    yield from (_broken_end(group, run) for run in problems)


def _broken_end(group: Group, run: Lines) -> Chunk:
    """What a file that ends too early leaves of its last record."""
    return _malformed(group, run.lines[-1:], run.problem or "")


def _malformed(group: Group, lines: Sequence[tuple[int, bytes]], detail: str) -> Chunk:
    refused = [Refused(line, LetterReason.MALFORMED_RECORD, detail, raw) for line, raw in lines]
    return Chunk(to_rows(group, [], []), [], [], refused)


# By the word of `format:`; the project's list of words is the same.
FORMAT_READERS: Mapping[str, Format] = {
    "json": Format(_read_json, is_array),
    # A quoted field may hold line ends, and the header stands at the beginning.
    "csv": Format(_read_csv, lambda path: True),
}
