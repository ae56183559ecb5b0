"""Reads records one by one, exactly: each becomes a row, or is refused with its reason.

Used by the readers of JSON, CSV and text; what is read faster equals this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from livemart.land.records.exact_values import MalformedError, TooLargeError
from livemart.land.records.judge import (
    MAX_RECORD_BYTES,
    Chunk,
    Group,
    Refused,
    convert_fields,
    to_rows,
)
from livemart.land.records.runs import line_size
from livemart.land.records.untyped_values import MisfitError, Rescued


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
    values: list[list[Any]] = []
    rescued: list[Rescued] = []
    accepted: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for number, raw in records:
        try:
            require_size(raw)
            converted, unknown = convert_fields(group, fields(raw))
        except (MisfitError, MalformedError) as error:
            refused.append(Refused(number, error.code, str(error), raw))
        else:
            values.append(converted)
            rescued.append(unknown)
            accepted.append((number, raw))
    rows = to_rows(group, values, rescued)
    numbers = [number for number, _ in accepted]
    return Chunk(rows, numbers, lambda row: accepted[row][1], refused)


def require_size(raw: bytes) -> None:
    """Refuse a record that is too long to be read; raises TooLargeError."""
    if len(raw) > MAX_RECORD_BYTES:
        raise TooLargeError(f"{line_size(raw)} bytes, at most {MAX_RECORD_BYTES} are read")
