"""Parses records one by one, exactly: each becomes a row, or is refused with its reason.

Used by the readers of JSON, CSV and text; what is read faster equals this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from livemart.land.records.by_columns import convert_columns
from livemart.land.records.exact_values import MalformedError, TooLargeError
from livemart.land.records.judge import MAX_RECORD_BYTES, Chunk, Group, Refused
from livemart.land.records.runs import line_size
from livemart.land.records.untyped_values import MisfitError


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
