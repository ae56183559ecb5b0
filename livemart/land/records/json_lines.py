"""Reads JSON, one object a line, to typed rows.

Used for runs of lines of a JSON source. Arrow reads a run at once, or it is read exactly.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from livemart.land.records.columns import UnlikeError, from_text, text_type
from livemart.land.records.debezium.change_record import ChangeRecords
from livemart.land.records.exact_values import MalformedError, parse_json
from livemart.land.records.judge import Chunk, Group
from livemart.land.records.misread import misread_json
from livemart.land.records.one_by_one import read_one_by_one
from livemart.land.records.pieces import read_in_pieces


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
