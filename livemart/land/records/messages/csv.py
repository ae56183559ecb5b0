"""Reads messages that hold one record of CSV each, without a header.

Used for record logs of the format `csv`: fields are in the order of the declared columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from livemart.land.reasons import LetterReason
from livemart.land.records.csv_rows import read_csv_rows, split_records
from livemart.land.records.judge import Chunk, Group, Refused

_ENDS = b"\r\n"


def read_csv_messages(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages and what could not become one.

    Args:
        group: columns of the records, in the order of the fields.
        messages: offset and content of each; a line end behind it is no part of the record.
    """
    header = tuple(name for name in group.schema.names if name not in group.schema.undeclared)
    records: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for number, raw in messages:
        content = raw.rstrip(_ENDS)
        count = 1
        if b"\n" in content:
            lines = [(number, line) for line in content.split(b"\n")]
            count = sum(1 for _ in split_records(lines))
        if count == 1:
            records.append((number, content))
        else:
            detail = f"{count} records of CSV: a message holds one"
            refused.append(Refused(number, LetterReason.MALFORMED_RECORD, detail, raw))
    chunk = read_csv_rows(group, header, records)
    return replace(chunk, refused=[*chunk.refused, *refused])
