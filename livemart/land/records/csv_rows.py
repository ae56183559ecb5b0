"""Reads CSV with a header to typed rows.

Used for each file of a CSV source. Quoted fields may hold commas, quotes and
newlines; a stray quote takes no other line with it.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from livemart.land.records.by_columns import read_one_by_one, require_size
from livemart.land.records.columns import UnlikeError, from_plain_text, is_plain_text
from livemart.land.records.exact_values import MalformedError, decode_text, parse_json
from livemart.land.records.judge import MAX_RECORD_BYTES, Chunk, Group
from livemart.land.records.pieces import read_in_pieces
from livemart.land.records.runs import CutLine

# A quote that is never closed takes at most so many lines with it before it is given up.
_MAX_LINES = 1_000
_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\Z)')
_OTHER_SIGNS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_NESTED = ("array", "struct", "map")

Header = tuple[str, ...]
Line = tuple[int, bytes]


def read_header(record: bytes, columns: Container[str]) -> Header:
    """Return the column names of a header, the first record of a file.

    Raises:
        MalformedError: not CSV, an empty name, a name twice, or lines that only a carriage return
            ends. Also if no name is of a column: then it is a record and the file has no header.
    """
    if record.lstrip().startswith((b'{"', b"[{")):
        raise MalformedError("JSON: write `format: json` for its source, or correct the `path`")
    names = tuple((name or "").strip() for name in split_fields(record))
    if any("\r" in name for name in names):
        raise MalformedError("a carriage return in a name: end lines with a line feed")
    if "" in names:
        raise MalformedError("the header has a column without a name")
    if len(set(names)) < len(names):
        raise MalformedError("the header has a name twice")
    if not any(name in columns for name in names):
        for sign, called in _OTHER_SIGNS.items():
            if any(part.strip() in columns for name in names for part in name.split(sign)):
                raise MalformedError(f"its names are separated by {called}: write commas")
        raise MalformedError("none of its names is a declared column")
    return names


def read_csv_rows(group: Group, header: Header, records: Sequence[Line]) -> Chunk:
    """Return the rows of some records, and the records that could not become one.

    Args:
        group: columns of the records.
        header: the file's column names.
        records: number of the first line and content, as `split_records` gives them.
    """
    is_plain = all(is_plain_text(field.type) for field in group.schema.arrow)
    fast = partial(_by_arrow, group, header) if is_plain else None
    return read_in_pieces(group, records, fast, partial(_exactly, group, header))


def _by_arrow(
    group: Group, header: Header, contents: Sequence[bytes], data: bytes
) -> list[pa.Array]:
    """Return the columns of a run of records; raises if the exact reader could see them otherwise.

    Raises:
        UnlikeError, pa.ArrowException.
    """
    if data.count(b"\n") != len(contents) - 1 or b'"' in data or b"\r" in data:
        raise UnlikeError
    if data.startswith(codecs.BOM_UTF8):
        # Arrow drops it, wherever in the file this run begins.
        raise UnlikeError
    read = pcsv.read_csv(
        io.BytesIO(data),
        read_options=pcsv.ReadOptions(
            column_names=list(header), use_threads=False, block_size=len(data) + 1
        ),
        parse_options=pcsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    for name in header:
        # A field that no column names is rescued, record by record.
        if name not in group.known_names and read.column(name).null_count < read.num_rows:
            raise UnlikeError
    return [
        from_plain_text(read.column(field.name).combine_chunks(), field.type)
        if field.name in header
        else pa.nulls(read.num_rows, field.type)
        for field in group.schema.arrow
    ]


def _exactly(group: Group, header: Header, records: Sequence[Line]) -> Chunk:
    nested = [name for name, kind in group.schema.columns if kind.name in _NESTED]
    strangers = [name for name in header if name not in group.known_names]

    def fields(raw: bytes) -> dict[str, Any]:
        record = _record(header, nested, raw)
        for name in strangers:
            if record[name] is None:
                del record[name]
        return record

    return read_one_by_one(group, records, fields)


def split_records(lines: Iterable[Line]) -> Iterator[Line]:
    """Join lines that a quoted newline separates; blank lines between records are left out.

    A line with a stray quote stays a separate record, which is then refused: it takes no other
    with it.
    """
    ahead: deque[Line] = deque()
    source = iter(lines)
    while ahead or (ahead := deque(islice(source, 1))):
        number, content = ahead.popleft()
        if not content.strip():
            continue
        if content.count(b'"') % 2 and (count := _closing(content, ahead, source)):
            joined = b"\n".join([content, *(part for _, part in islice(ahead, count))])
            if _is_csv(joined):
                content = joined
                for _ in range(count):
                    ahead.popleft()
        yield number, content if isinstance(content, CutLine) else content.removesuffix(b"\r")


def split_fields(record: bytes) -> list[str | None]:
    """Return the fields of a record: text, "" if quoted and empty, None if empty.

    Raises:
        MalformedError: invalid UTF-8, NUL, or a quote where none may be.
    """
    require_size(record)
    text = decode_text(record)
    if '"' not in text:
        return [field or None for field in text.split(",")]
    fields: list[str | None] = []
    position = 0
    while True:
        match = _FIELD.match(text, position)
        if match is None:
            raise MalformedError(f"a quote out of place near character {position + 1}")
        quoted, plain, comma = match.groups()
        fields.append(quoted.replace('""', '"') if quoted is not None else plain or None)
        position = match.end()
        if not comma:
            return fields


def _record(header: Header, nested: Sequence[str], raw: bytes) -> dict[str, Any]:
    fields = split_fields(raw)
    if len(fields) != len(header):
        raise MalformedError(f"{len(fields)} fields, the header has {len(header)}")
    record: dict[str, Any] = dict(zip(header, fields, strict=True))
    for name in nested:
        # An empty text is for the conversion to judge, as that of any other column.
        if text := record.get(name):
            record[name] = parse_json(text.encode("utf-8"))
    return record


def _closing(opening: bytes, ahead: deque[Line], source: Iterator[Line]) -> int:
    """Return how many more lines the quote in `opening` needs to close; 0 if it never does."""
    size = len(opening)
    for count in range(1, _MAX_LINES):
        if len(ahead) < count:
            ahead.extend(islice(source, 1))
        if len(ahead) < count:
            return 0
        content = ahead[count - 1][1]
        size += len(content) + 1
        if size > MAX_RECORD_BYTES:
            return 0
        if content.count(b'"') % 2:
            return count
    return 0


def _is_csv(record: bytes) -> bool:
    try:
        split_fields(record.removesuffix(b"\r"))
    except MalformedError:
        return False
    return True
