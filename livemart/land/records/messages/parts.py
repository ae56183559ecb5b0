"""Puts the parts of a message beside its content into columns: its key, headers, time, place.

Used for sources that map parts of a message to columns (`message:`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import pyarrow as pa

from livemart.epoch import epoch_moment, timestamp_text
from livemart.land.records.exact_values import MalformedError, decode_text, refuse_characters
from livemart.land.records.judge import Chunk, Group, Refused, all_refused
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.untyped_values import DOES_NOT_FIT, MisfitError
from livemart.project.landing_columns import RESCUED
from livemart.project.record_logs.message_parts import TOMBSTONE


class PartColumns:
    """The columns that hold parts of some messages.

    Args:
        group: its `message` says which part is which column.
        run: the messages; a record that is none has an offset and no other part.

    Attributes:
        names: of the columns.
        takes_tombstones: whether a message without content is a row.
        refused: why a message's parts fit no column, by its offset.
    """

    def __init__(self, group: Group, run: Sequence[Record]) -> None:
        self._group = group
        self.takes_tombstones = TOMBSTONE in dict(group.record_rules.message)
        self.names = frozenset(column for _, column in group.record_rules.message)
        self.refused: dict[int, Refused] = {}
        self._values: dict[str, dict[int, Any]] = {}
        messages = [item if isinstance(item, Message) else Message(*item) for item in run]
        for part, column in group.record_rules.message:
            read = _reader(part, group.schema.arrow.field(column).type)
            values: dict[int, Any] = {}
            for message in messages:
                try:
                    values[message.offset] = read(message)
                except (MalformedError, MisfitError) as error:
                    detail = f"{part} of the message: {error}"
                    self.refused[message.offset] = Refused(
                        message.offset, error.code, detail, message.content or b""
                    )
            self._values[column] = values

    def refused_chunk(self) -> Chunk:
        """Return the messages that are refused for their parts."""
        return all_refused(self._group, list(self.refused.values()))

    def beside(self, chunk: Chunk) -> Chunk:
        """Return the rows of contents with the columns that hold parts of the same messages."""
        arrays = [
            pa.array(map(self._values[field.name].__getitem__, chunk.lines), field.type)
            if field.name in self.names
            else chunk.rows.column(field.name)
            for field in self._group.schema.arrow
        ]
        arrays.append(chunk.rows.column(RESCUED))
        return replace(chunk, rows=pa.table(arrays, schema=self._group.typed))


def _reader(part: str, kind: pa.DataType) -> Callable[[Message], Any]:
    """Return the function that reads a part for a column of a type.

    It raises MalformedError or MisfitError.
    """
    match part:
        case "key":
            return _key_text if pa.types.is_string(kind) else attrgetter("key")
        case "headers":
            if pa.types.is_map(kind):
                return _header_map
            is_text = pa.types.is_string(kind.value_type.field("value").type)
            return partial(_header_list, is_text)
        case _:
            return _PLAIN[part]


_PLAIN: Mapping[str, Callable[[Message], Any]] = {
    "timestamp": lambda message: _moment(message.timestamp_us),
    "topic": attrgetter("topic"),
    "partition": attrgetter("partition"),
    "offset": attrgetter("offset"),
    TOMBSTONE: lambda message: message.content is None,
}


def _moment(micros: int | None) -> int | None:
    if micros is None:
        return None
    try:
        epoch_moment(micros)
    except OverflowError:
        # A producer may name any time.
        text = timestamp_text(micros * 1_000)
        raise MisfitError(f'"{text}"{DOES_NOT_FIT}timestamp') from None
    return micros


def _text(raw: bytes | None, prefix: str = "") -> str | None:
    return None if raw is None else decode_text(raw, prefix)


def _key_text(message: Message) -> str | None:
    return _text(message.key)


def _header_map(message: Message) -> list[tuple[str, str | None]]:
    """Return the headers; the last value of a repeated name holds, as in brokers' own clients."""
    headers = {name: _text(value, f"{name}: ") for name, value in message.headers}
    refuse_characters(list(headers))
    # Sorted: two maps that are equal are then equal rows.
    return sorted(headers.items())


def _header_list(is_text: bool, message: Message) -> list[dict[str, Any]]:
    refuse_characters([name for name, _ in message.headers])
    return [
        {"key": name, "value": _text(value, f"{name}: ") if is_text else value}
        for name, value in message.headers
    ]
