"""Opens a change record of Debezium: the row after or before a change, its kind and its place.

Used by the reader of JSON lines, for sources with that envelope. The fields of a record are then
those of the row and three added ones: `_operation`, `_sequence`, `_kept_values`.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from livemart.land.reasons import LetterReason
from livemart.land.records.debezium.encodings import (
    UNNAMED,
    Schema,
    decode,
    fields_of,
    is_base64,
)
from livemart.land.records.debezium.positions import sequence_of
from livemart.land.records.exact_values import TEXT, MalformedError, NoRowError, parse_json
from livemart.land.records.runs import KeyedLine
from livemart.land.records.untyped_values import Number, name_in_path
from livemart.project.graph import EnvelopeOptions
from livemart.project.landing_columns import ENVELOPE_COLUMNS, KEPT, OPERATION, SEQUENCE
from livemart.project.spark_types import SparkType

_IMAGE = {"c": "after", "r": "after", "u": "after", "d": "before"}
# A database's log holds what changes no row, too.
_HEARTBEAT = frozenset({"ts_ms", "ts_us", "ts_ns"})
_POSTGRES = "postgresql"

_PLACEHOLDER = b"__debezium_unavailable_value"
# These stand for a large value that a change left as it was; in a column of bytes, of an array.
_UNAVAILABLE_TEXTS = frozenset(
    {
        _PLACEHOLDER.decode(),
        base64.b64encode(_PLACEHOLDER).decode(),
        base64.urlsafe_b64encode(_PLACEHOLDER).decode(),
        _PLACEHOLDER.hex(),
        str(uuid.UUID(bytes=hashlib.md5(_PLACEHOLDER).digest(), version=3)),
    }
)
_UNAVAILABLE_NUMBERS = [Number(byte) for byte in _PLACEHOLDER]


class TruncatedError(MalformedError):
    """A truncate of the table. `code` is the dead letter's reason."""

    code = LetterReason.TRUNCATED


class ChangeRecords:
    """Reads change records of one table.

    Args:
        columns: names and types that the source lands.
        keys: of its columns; of a delete nothing else is taken if there are any.
        options: how the connector writes.
    """

    def __init__(
        self,
        columns: Iterable[tuple[str, SparkType]],
        keys: tuple[str, ...],
        options: EnvelopeOptions,
    ) -> None:
        self._kinds = {name: kind for name, kind in columns if name not in ENVELOPE_COLUMNS}
        self._paths = {name: name_in_path(name) for name in self._kinds}
        self._keys = keys
        self._options = options

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the values of a record by name.

        Raises:
            MalformedError: it is no change record, or cannot be taken; NoRowError, if it says
                nothing of a row of this table, as a tombstone.
            MisfitError: a value is not encoded as it should be.
        """
        key, value = _message(parse_json(raw))
        if key is None and isinstance(raw, KeyedLine):
            key = raw.key
        return self.row(*_opened(value), lambda: opened_json(key))

    def row(
        self,
        schema: Schema | None,
        payload: Any,
        open_key: Callable[[], tuple[Schema | None, Any]],
    ) -> dict[str, Any]:
        """Return the values of a record by name.

        Args:
            schema: what the record says of its types, as JsonConverter writes it.
            payload: its content, as JSON with numbers as they are written.
            open_key: returns schema and content of the message's key.

        Raises:
            MalformedError, NoRowError, MisfitError: as `fields`.
        """
        if payload is None:
            raise NoRowError("a tombstone")
        if type(payload) is not dict:
            raise MalformedError("not a JSON object")
        operation, source = _operation(payload), payload.get("source")
        if not isinstance(source, dict):
            raise MalformedError("no `source`, which says where in the log the change is")
        if self._options.table is not None and not _is_of(source, self._options.table):
            raise NoRowError(f"a change of another table than {self._options.table}")
        if operation == "t" and self._keys:
            raise TruncatedError(
                "the table was truncated at this position; the rows before it are still here: hand "
                "over a delete (`op` d) of each, with this `source`, to remove them"
            )
        sequence = sequence_of(source, operation, payload.get("transaction"))
        row = {}
        if operation != "t":
            image, schemas = self._image(operation, payload, schema, open_key)
            if operation == "u" and source.get("connector") == _POSTGRES:
                self._refuse_unknown_bytes(payload, image, schemas)
            row = self._row(image, schemas)
        return row | {OPERATION: operation, SEQUENCE: sequence}

    def _image(
        self,
        operation: str,
        payload: dict[str, Any],
        schema: Schema | None,
        open_key: Callable[[], tuple[Schema | None, Any]],
    ) -> tuple[dict[str, Any], Mapping[str, Schema]]:
        """Return the row that a change leaves or removes, and the schemas of its fields."""
        side = _IMAGE[operation]
        image, schemas = payload.get(side), fields_of(fields_of(schema).get(side))
        if image is None and operation == "d" and self._keys:
            # REPLICA IDENTITY NOTHING, or a connector that leaves it out: the key is enough.
            key_schema, image = open_key()
            schemas = fields_of(key_schema)
        if type(image) is not dict:
            raise MalformedError(f"op {operation} without a row in `{side}`")
        if reserved := image.keys() & set(ENVELOPE_COLUMNS):
            raise MalformedError(
                f"the row has a field {min(reserved)}, a name that landing reserves: exclude "
                "it in the connector (column.exclude.list)"
            )
        if operation == "d" and self._keys:
            image = {name: value for name, value in image.items() if name in self._keys}
        before = payload.get("before")
        if operation == "u" and type(before) is dict:
            moved = [key for key in self._keys if key in before and before[key] != image.get(key)]
            if moved:
                raise MalformedError(
                    f"{moved[0]} changed within one update, so it is not the connector's key: "
                    "declare the table's primary key as `keys`"
                )
        return image, schemas

    def _refuse_unknown_bytes(
        self, payload: dict[str, Any], image: dict[str, Any], schemas: Mapping[str, Schema]
    ) -> None:
        """Refuse an update whose NULL may stand for bytes that it left as they were.

        With `binary.handling.mode` base64 the connector to PostgreSQL writes both alike (at least
        up to 3.7: of all modes `bytes` and `hex` alone put the placeholder into such a column).
        """
        if type(payload.get("before")) is dict:
            return
        for name, kind in self._kinds.items():
            is_null = image.get(name, "") is None
            if is_null and is_base64(kind, schemas.get(name), self._options):
                raise MalformedError(
                    f"{name}: null, which with `binary.handling.mode: base64` also stands for large"
                    " bytes that a change left unchanged. Let the connector write `bytes` or "
                    "`hex`, or give the table `REPLICA IDENTITY FULL`. Then read its rows again"
                )

    def _row(self, image: dict[str, Any], schemas: Mapping[str, Schema]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        unavailable: dict[str, None] = {}
        for name, value in image.items():
            kind = self._kinds.get(name)
            if not _is_unavailable(value):
                written = UNNAMED if kind is None or kind.name == TEXT else kind
                path = self._paths.get(name) or name_in_path(name)
                row[name] = decode(value, path, written, schemas.get(name), self._options)
            else:
                # Drift may bring the column, with this very record's earlier version.
                unavailable[name] = None
        return row | {KEPT: unavailable or None}


def _message(value: Any) -> tuple[Any, Any]:
    """Return key and value of a record, which may be inside the frame of a message.

    kcat (`-J`: key, payload) or an engine (topic, key, value) writes such frames. There both may be
    JSON in a text, and a key that is never asked for anything else.
    """
    if type(value) is dict and "topic" in value and "op" not in value:
        for name in ("value", "payload"):
            if name in value:
                return value.get("key"), _json(value[name])
    return None, value


def _json(value: Any) -> Any:
    match value:
        case bytes():
            return parse_json(value)
        case str() if type(value) is str:
            return parse_json(value.encode())
        case _:
            return value


def _opened(value: Any) -> tuple[Schema | None, Any]:
    """Return schema and content, as JsonConverter puts them beside each other."""
    if type(value) is dict and value.keys() == {"schema", "payload"}:
        schema = value["schema"]
        return (schema if type(schema) is dict else None), value["payload"]
    return None, value


def opened_json(key: Any) -> tuple[Schema | None, Any]:
    """Return schema and content of a key that is JSON, or a text or bytes with JSON."""
    return _opened(_json(key))


def _operation(payload: dict[str, Any]) -> str:
    operation = payload.get("op")
    if operation in _IMAGE or operation == "t":
        return str(operation)
    if operation == "m":
        raise NoRowError("a message of the log")
    if operation is not None:
        raise MalformedError(
            f"op: found {operation!r}, expected one of {', '.join(_IMAGE)}, t and m"
        )
    if payload.keys() <= _HEARTBEAT:
        raise NoRowError("a heartbeat")
    if "ddl" in payload or payload.get("status") in ("BEGIN", "END"):
        raise NoRowError("a change of the schema, or the bound of a transaction")
    raise MalformedError(
        "no `op`: not a change record; if the connector unwraps them (ExtractNewRecordState), leave"
        " `envelope` out"
    )


def _is_of(source: Mapping[str, Any], table: str) -> bool:
    name = source.get("table")
    return table in (name, f"{source.get('schema') or source.get('db')}.{name}")


def _is_unavailable(value: Any) -> bool:
    match value:
        case Number():
            return False
        case str():
            return value in _UNAVAILABLE_TEXTS
        case [Number(), *_]:
            return bool(value == _UNAVAILABLE_NUMBERS)
        case [str(only)]:
            return only in _UNAVAILABLE_TEXTS
        case dict() if len(value) == 1:
            return _PLACEHOLDER.decode() in value
        case _:
            return False
