"""Lists every reason for which a record, a file or a range of a log becomes a dead letter.

Used wherever landing refuses something; docs/landing.md has these sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class LetterReason(StrEnum):
    """Why there is a dead letter."""

    MALFORMED_RECORD = "MALFORMED_RECORD"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    NULL_KEY = "NULL_KEY"
    NULL_SEQUENCE = "NULL_SEQUENCE"
    FUTURE_EVENT_TIME = "FUTURE_EVENT_TIME"
    TOO_LATE = "TOO_LATE"
    EVENT_TIME_MOVED = "EVENT_TIME_MOVED"
    RECORD_TOO_LARGE = "RECORD_TOO_LARGE"
    SCHEMA_DRIFT = "SCHEMA_DRIFT"
    SOURCE_FILE_CHANGED = "SOURCE_FILE_CHANGED"
    RECORDS_EXPIRED = "RECORDS_EXPIRED"
    TRUNCATED = "TRUNCATED"


def meaning_of(reason: str) -> str:
    """Return the meaning of a reason, in Markdown; nothing for a reason of another version."""
    return _MEANINGS.get(reason, "")


_MEANINGS: Mapping[str, str] = {
    LetterReason.MALFORMED_RECORD: "the record cannot be read as its format, or is not UTF-8",
    LetterReason.TYPE_MISMATCH: "a value does not fit its column's type",
    LetterReason.NULL_KEY: "a column of the key is missing",
    LetterReason.NULL_SEQUENCE: "a column of the sequence is missing",
    LetterReason.FUTURE_EVENT_TIME: "the event time is further in the future than `max_future`",
    LetterReason.TOO_LATE: "the event time is longer ago than `horizon`",
    LetterReason.EVENT_TIME_MOVED: (
        "a key broke the promise `event_time_is_fixed`: another time than the stored one, or than"
        " the earliest of the key's lowest sequence in the batch"
    ),
    LetterReason.RECORD_TOO_LARGE: "the record is longer than the limit",
    LetterReason.SCHEMA_DRIFT: (
        "a field that the columns do not name, with `schema_drift: fail`: landing stops, and takes"
        " the letter back when the record lands after all"
    ),
    LetterReason.SOURCE_FILE_CHANGED: (
        "a whole file: it was changed after it was landed, or its records were given up"
    ),
    LetterReason.RECORDS_EXPIRED: (
        "a range of a record log, or the rest of a partition, that the log lost before it was read;"
        " the source goes on after it (`after_loss`)"
    ),
    LetterReason.TRUNCATED: (
        "a change record says that the table was truncated; its rows stay, see"
        " [sources](sources.md#effect-of-each-change-record)"
    ),
}
