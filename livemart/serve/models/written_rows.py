"""Reads rows of a model and writes them: as JSON, CSV or Arrow for a pull, as events for a stream.

Used in threads of the server and in side processes: so nothing here knows a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from livemart.serve.live.snapshot_json import age_of, event, json_text, snapshot_head, to_json
from livemart.store.served import Published, ServedModel
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import decimal_size, json_value

# Rows that keep no one else waiting while they are read and written by a thread of the server.
SMALL = 100
# Events in one piece: a client is sent the next when it has taken this one.
SLICE = 200
# Rows that are written as JSON at once.
_PIECE = 100
_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "json": pa.string(),
    "binary": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows with the columns of `model`, from a snapshot; `is_truncated`: there are more of them."""

    model: ServedModel
    rows: Sequence[Mapping[str, Any]]
    published: Published
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class PullQuery:
    """The rows that a query asks for, and how they are written.

    `model`: the model that the question was read for. `asked`: what `SnapshotView.rows` is asked
    for, `columns` among it, but without `limit`. `limit`: of rows in the answer.
    """

    model: ServedModel
    asked: Mapping[str, Any]
    limit: int
    write: Callable[[ShownRows], bytes]


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The body of an answer. `count`: rows that were read for it."""

    body: bytes
    count: int
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """All rows of a model as events, none if they are too many. `count`: rows that were read."""

    mark: str
    count: int
    slices: Sequence[bytes]


def write_answer(
    view: SnapshotView, query: PullQuery, most: int | None = None
) -> WrittenRows | None:
    """Return the answer from a snapshot.

    Args:
        view: the snapshot.
        query: the query.
        most: rows of the largest answer that is written here; None: of any size.

    Returns:
        None if the answer is larger, or the snapshot has another model of this name, or none.
    """
    model = query.model
    if view.models().get(model.name) != model:
        return None
    limit = query.limit if most is None else min(query.limit, most)
    rows = view.rows(model.name, **query.asked, limit=limit + 1)
    is_truncated = len(rows) > limit
    if is_truncated and limit < query.limit:
        return None
    kinds = model.kinds
    shown = replace(model, columns=tuple((name, kinds[name]) for name in query.asked["columns"]))
    body = query.write(ShownRows(shown, rows[:limit], view.published, is_truncated))
    return WrittenRows(body, len(rows), is_truncated)


def write_reset(
    view: SnapshotView, name: str, tenants: frozenset[str] | None, most: int
) -> Reset | None:
    """Return all rows of a model for who has none, `most` at most; None if it is not served."""
    model = view.models().get(name)
    if model is None:
        return None
    rows, mark = view.rows(name, tenants=tenants, limit=most + 1), view.mark(name)
    if len(rows) > most:
        return Reset(mark, len(rows), ())
    head = {**snapshot_head(view.published), "row_count": len(rows)}
    slices = [event("reset", to_json(head), None)]
    opening = {"snapshot_id": view.published.snapshot_id, "op": "insert"}
    for start in range(0, len(rows), SLICE):
        bodies = ({**opening, "row": json_row(model, row)} for row in rows[start : start + SLICE])
        slices.append(b"".join(event("change", to_json(body), None) for body in bodies))
    return Reset(mark, len(rows), slices)


def write_json_rows(shown: ShownRows) -> bytes:
    """Return a JSON object with the snapshot's head and the rows."""
    model, rows, published = shown.model, shown.rows, shown.published
    opening = {"model": model.name, "window": None, **snapshot_head(published)}
    head = json_text({**opening, **age_of(published, model.name)})[:-1]
    # No other thread goes on while a text is written: not all rows at once.
    pieces = (
        json_text([json_row(model, row) for row in rows[start : start + _PIECE]])[1:-1]
        for start in range(0, len(rows), _PIECE)
    )
    end = json_text({"is_truncated": shown.is_truncated})[1:]
    return f'{head},"rows":[{",".join(pieces)}],{end}'.encode()


def json_row(model: ServedModel, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON values, as the change log writes them."""
    return {name: json_value(row[name], kind) for name, kind in model.columns}


def write_csv_rows(shown: ShownRows) -> bytes:
    """RFC 4180, in UTF-8; NULL is an empty field, an empty string is a quoted one."""
    columns = shown.model.columns
    lines = [[_csv_field(name) for name, _ in columns]]
    lines += [
        [_csv_field(json_value(row[name], kind)) for name, kind in columns] for row in shown.rows
    ]
    return "".join(",".join(line) + "\r\n" for line in lines).encode()


def _csv_field(plain: Any) -> str:
    if plain is None:
        return ""
    text = plain if isinstance(plain, str) else json_text(plain)
    if text == "" or any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_arrow_rows(shown: ShownRows) -> bytes:
    """A stream of record batches; nested values are JSON texts, as the store keeps them."""
    columns, published = shown.model.columns, shown.published
    age = age_of(published, shown.model.name)
    said = {**snapshot_head(published), **age, "is_truncated": shown.is_truncated}
    schema = pa.schema(
        [pa.field(name, _arrow_type(kind)) for name, kind in columns],
        metadata={name: str(value) for name, value in said.items()},
    )
    arrays = [
        pa.array([_arrow_value(kind, row[name]) for row in shown.rows], _arrow_type(kind))
        for name, kind in columns
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def _arrow_type(kind: str) -> pa.DataType:
    size = decimal_size(kind)
    return pa.decimal128(*size) if size else _ARROW_TYPES[kind]


def _arrow_value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "timestamp_ntz":
        return value.replace(tzinfo=None)
    return json_text(value) if kind == "json" else value
