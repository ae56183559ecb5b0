"""Converts records exactly: each becomes a row, or is refused with its reason.

Used by the readers of every format, for records that Arrow does not read at once: faster readers
give the same. Parsed records are converted column by column. Where the values of a column are
written plainly, Arrow converts them together, to what the conversion of each value gives; else each
is converted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from livemart.land.records.columns import UnlikeError, from_plain_text, from_text, is_plain_text
from livemart.land.records.exact_values import MalformedError, TooLargeError
from livemart.land.records.judge import MAX_RECORD_BYTES, Chunk, Group, Refused, with_rescued
from livemart.land.records.runs import line_size
from livemart.land.records.untyped_values import (
    MisfitError,
    Number,
    Rescued,
    compact,
    name_in_path,
)

_NOTHING = type(None)
_TEXTS = frozenset({str, _NOTHING})
_WRITTEN = frozenset({str, Number, _NOTHING})
_FLAGS = frozenset({bool, _NOTHING})


def convert_columns(
    group: Group,
    records: Sequence[Mapping[str, Any]],
    *,
    ready: Mapping[str, pa.Array] = MappingProxyType({}),
    keeps_null: bool = True,
) -> tuple[pa.Table, dict[int, MisfitError]]:
    """Return the rows of parsed records, and the refusals of those that do not fit.

    Args:
        group: columns of the records.
        records: values by name, as `converter` takes them; of `ready` columns none.
        ready: columns that are read already, by name.
        keeps_null: whether an unknown field that is null is rescued.

    Returns:
        The rows in the schema `Group.typed`, in order; and by position the first misfit of each
        record that is none of them.
    """
    declared = group.known_names
    rescued: list[Rescued] = [
        {name_in_path(name): compact(record[name]) for name in record.keys() - declared}
        for record in records
    ]
    refused: dict[int, MisfitError] = {}
    arrays = []
    for (name, convert), field in zip(group.converters, group.schema.arrow, strict=True):
        if (column := ready.get(name)) is None:
            values = [record.get(name) for record in records]
            column = _at_once(values, field.type, group.record_rules.empty_is_null)
        if column is None:
            converted, path = [], name_in_path(name)
            for position, value in enumerate(values):
                try:
                    fitted = None if value is None else convert(value, path, rescued[position])
                except MisfitError as error:
                    refused.setdefault(position, error)
                    fitted = None
                converted.append(fitted)
            column = pa.array(converted, field.type)
        arrays.append(column)
    if not keeps_null:
        rescued = [
            {name: text for name, text in fields.items() if text is not None} for fields in rescued
        ]
    rows = with_rescued(group, arrays, rescued)
    if refused:
        fits = [position not in refused for position in range(len(records))]
        rows = rows.filter(pa.array(fits))
    return rows, refused


def _at_once(values: Sequence[Any], kind: pa.DataType, empty_is_null: bool) -> pa.Array | None:
    """Return values as a column of type `kind`; None if each has to be converted alone."""
    kinds = set(map(type, values))
    with suppress(UnlikeError, pa.ArrowException):
        if not is_plain_text(kind):
            return None
        if pa.types.is_boolean(kind):
            return pa.array(values, kind) if kinds <= _FLAGS else None
        if pa.types.is_temporal(kind):
            texts = pa.array(values, pa.string()) if kinds <= _TEXTS else None
            return None if texts is None else from_text(texts, kind, empty_is_null)
        if kinds <= _WRITTEN:
            return from_plain_text(pa.array(values, pa.string()), kind)
    return None


def read_one_by_one(
    group: Group,
    records: Sequence[tuple[int, bytes]],
    fields: Callable[[bytes], dict[str, Any]],
) -> Chunk:
    """Return the rows of some records, and the records that could not become one.

    Args:
        group: columns of the records.
        records: number and content of each.
        fields: returns a record's values by name; raises MalformedError.
    """
    parsed: list[dict[str, Any]] = []
    readable: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for number, raw in records:
        try:
            require_size(raw)
            parsed.append(fields(raw))
        except (MisfitError, MalformedError) as error:
            refused.append(Refused(number, error.code, str(error), raw))
        else:
            readable.append((number, raw))
    rows, misfits = convert_columns(group, parsed)
    for position, misfit in misfits.items():
        number, raw = readable[position]
        refused.append(Refused(number, misfit.code, str(misfit), raw))
    accepted = [record for position, record in enumerate(readable) if position not in misfits]
    numbers = [number for number, _ in accepted]
    refused.sort(key=attrgetter("line"))
    return Chunk(rows, numbers, lambda row: accepted[row][1], refused)


def require_size(raw: bytes) -> None:
    """Refuse a record that is too long to be read; raises TooLargeError."""
    if len(raw) > MAX_RECORD_BYTES:
        raise TooLargeError(f"{line_size(raw)} bytes, at most {MAX_RECORD_BYTES} are read")
