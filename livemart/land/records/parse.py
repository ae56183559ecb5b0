"""Reads runs of records of a format to judged rows.

Used by every part of a delivery: in the driver for a micro-batch that it holds, in Spark's workers
for a larger one. One table of formats, so that both land the same rows.

Arrow reads a run of JSON at once, one object a line, or it is read exactly.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from livemart.land.records.by_columns import read_one_by_one
from livemart.land.records.columns import (
    UnlikeError,
    from_text,
    holds_decimal,
    misleads_decimals,
    text_type,
)
from livemart.land.records.csv_rows import Header, Line, read_csv_rows, read_header, split_records
from livemart.land.records.debezium.change_record import ChangeRecords
from livemart.land.records.exact_values import MalformedError, decode_text, parse_json
from livemart.land.records.judge import Chunk, Group, judge, malformed
from livemart.land.records.misread import misread_json
from livemart.land.records.origin import Place
from livemart.land.records.pieces import read_in_pieces
from livemart.land.records.runs import WHOLE, CutLine, KeyedLine, Lines, Span
from livemart.land.records.typed.avro_rows import read_avro
from livemart.land.records.typed.parquet_rows import parquet_spans, read_parquet
from livemart.project.sources import TEXT_COLUMN

_RUN_RECORDS = 8_192
_Split = Callable[[Iterable[Line]], Iterator[Line]]


def read_json_lines(group: Group, lines: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some lines, and the lines that could not become one.

    Args:
        group: columns of the records.
        lines: line number and content without the line's end; blank lines left out.
    """
    if group.record_rules.envelope is not None:
        options = group.record_rules.envelope_options
        changes = ChangeRecords(group.schema.columns, group.rules[0].row_rules.keys, options)
        return read_one_by_one(group, lines, changes.fields)
    kind = text_type(pa.struct(list(group.schema.arrow)))
    fast = None if kind is None else partial(_by_arrow, group, pa.schema(list(kind)))
    return read_in_pieces(group, lines, fast, partial(read_one_by_one, group, fields=parse_object))


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object with numbers as they are written.

    Raises:
        MalformedError: as `parse_json`, or not an object; it says what else the content looks like.
    """
    try:
        value = parse_json(raw)
    except MalformedError as error:
        if looks := misread_json(raw):
            raise MalformedError(f"{looks} ({error})") from error
        raise
    if type(value) is not dict:
        is_twice = type(value) is str and value.lstrip().startswith("{")
        raise MalformedError(
            "not a JSON object" + (": an object in a text, encoded twice" if is_twice else "")
        )
    return value


def _by_arrow(
    group: Group, schema: pa.Schema, contents: Sequence[bytes], data: bytes
) -> list[pa.Array]:
    """Return the columns of a run of lines; raises if the exact reader could see them otherwise.

    Raises:
        UnlikeError, pa.ArrowException.
    """
    # An object that starts and ends its line cannot reach into the next one. Other texts are not
    # given to Arrow at all: its parser crashes on a line that holds `null` alone.
    if not all(raw[0] == 0x7B and raw[-1] == 0x7D for raw in contents) or b"\\u0000" in data:
        raise UnlikeError
    if holds_decimal(group.schema.arrow) and misleads_decimals(data):
        raise UnlikeError
    read = pj.read_json(
        io.BytesIO(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    empty_is_null = group.record_rules.empty_is_null
    return [
        from_text(read.column(field.name).combine_chunks(), field.type, empty_is_null)
        for field in group.schema.arrow
    ]


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How records of a format are read from runs of lines.

    `read`: yields them typed; `split`: yields the records of numbered lines as they are kept;
    `has_header`: the first record of a file says what the others hold; `may_be_array`: a file may
    be one array, whose elements are the records.
    """

    read: Callable[[Group, Iterable[Lines]], Iterator[Chunk]]
    split: _Split
    has_header: bool = False
    may_be_array: bool = False


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How records of a format are read whose file is no sequence of lines.

    `read`: yields those of a part of a file, typed; `spans`: the parts of a file.
    """

    read: Callable[[Group, Path, Span], Iterator[Chunk]]
    spans: Callable[[Path], list[Span]] = lambda path: [WHOLE]


def parse_runs(group: Group, place: Place, runs: Iterable[Lines]) -> Iterator[pa.Table]:
    """Yield records as tables of `group.judged`: good and refused ones."""
    for chunk in typed_chunks(group, runs):
        yield judge(group, place, chunk)


def typed_chunks(group: Group, runs: Iterable[Lines]) -> Iterator[Chunk]:
    """Yield the records of runs, typed."""
    line_format = RECORD_FORMATS[group.record_rules.format]
    assert isinstance(line_format, LineFormat), group.record_rules.format
    yield from line_format.read(group, runs)


def _read_lines(
    read: Callable[[Group, Sequence[tuple[int, bytes]]], Chunk],
    split: _Split,
    group: Group,
    runs: Iterable[Lines],
) -> Iterator[Chunk]:
    """Yield lines, each a separate record."""
    for run in runs:
        if run.problem:
            yield _broken_end(group, run)
            continue
        lines = list(split(run.lines))
        for start in range(0, len(lines), _RUN_RECORDS):
            yield read(group, lines[start : start + _RUN_RECORDS])


def _read_text(group: Group, lines: Sequence[tuple[int, bytes]]) -> Chunk:
    """A line is one column: for logs and formats of other kinds, which SQL then takes apart."""
    return read_one_by_one(group, lines, lambda content: {TEXT_COLUMN: decode_text(content)})


def _stripped(strip: Callable[[bytes], bytes], lines: Iterable[Line]) -> Iterator[Line]:
    for number, line in lines:
        if text := line if isinstance(line, CutLine | KeyedLine) else strip(line):
            yield number, text


_split_json = partial(_stripped, bytes.strip)
_split_text = partial(_stripped, methodcaller("removesuffix", b"\r"))


def _read_csv(group: Group, runs: Iterable[Lines]) -> Iterator[Chunk]:
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
            yield malformed(group, [first], f"header: {error}")
    while run_of_records := list(islice(records, _RUN_RECORDS)):
        if header is None:
            yield malformed(group, run_of_records, "the file's header is malformed")
        else:
            yield read_csv_rows(group, header, run_of_records)
    yield from (_broken_end(group, run) for run in problems)


def _broken_end(group: Group, run: Lines) -> Chunk:
    """Return the last record of a file that ends too early, refused."""
    return malformed(group, run.lines[-1:], run.problem or "")


# By the word of `format:`; the project's list of words is the same.
RECORD_FORMATS: Mapping[str, LineFormat | FileFormat] = {
    "json": LineFormat(
        partial(_read_lines, read_json_lines, _split_json), _split_json, may_be_array=True
    ),
    # A quoted field may hold line ends, and the header is at the beginning.
    "csv": LineFormat(_read_csv, split_records, has_header=True),
    "text": LineFormat(partial(_read_lines, _read_text, _split_text), _split_text),
    "parquet": FileFormat(read_parquet, parquet_spans),
    "avro": FileFormat(read_avro),
}
