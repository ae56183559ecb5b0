"""Reads rows of a model and writes them as the answer to a pull: JSON, CSV, Arrow or Parquet.

Used in threads of the server and in side processes: so nothing here knows a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from livemart.arrow.single_floats import nearest_single
from livemart.serve.live.snapshot_json import age_of, json_text, snapshot_head, to_json
from livemart.serve.models.row_cursors import RowCursors, order_kinds
from livemart.store.positions import Position
from livemart.store.predicates import AskedRows
from livemart.store.row_places import RowPlace, order_columns
from livemart.store.served import Published, ServedModel
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import decimal_size, json_value

# Rows that keep no one else waiting while they are read and written by a thread of the server.
SMALL = 100
# Rows that are in memory at once, beside the answer.
_ROWS = 500
# An answer that has become longer ends, as one of too many rows does.
MOST_BYTES = 16 * 1024 * 1024
# Kinds with a value that is written as no character.
_EMPTY_VALUES = ("string", "binary")
_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "json": pa.string(),
    "binary": pa.binary(),
}


SomeRows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PullQuery:
    """A query for rows of a model, as it was when the query was read.

    `asked` is without `limit`, and names the columns; `limit`: of rows in the answer. `since`: the
    snapshot of the first page, if this is a later one. `is_moving`: a page may be of a later
    snapshot than the one before. `cursors` are those of the query.
    """

    model: ServedModel
    asked: AskedRows
    limit: int
    form: type[RowWriter]
    cursors: RowCursors
    since: Position | None = None
    is_moving: bool = False


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The body of an answer. `count`: rows that were read for it.

    `since`: the snapshot of the first page, whose later changes complete all pages; `next`: the
    cursor of the rows behind these. `is_gone`: the walk cannot go on in this snapshot, and nothing
    was read.
    """

    body: bytes
    count: int
    is_truncated: bool
    since: Position
    next: str | None = None
    is_gone: bool = False


def write_answer(
    view: SnapshotView, query: PullQuery, most: int | None = None
) -> WrittenRows | None:
    """Return the answer from a snapshot; one that becomes too long ends early.

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
    asked, newest = query.asked, Position(view.published.snapshot_id, view.mark(model.name))
    since = query.since or newest
    if not _can_go_on(view, query, since):
        return WrittenRows(b"", 0, False, since, is_gone=True)
    if not query.is_moving:
        since = newest
    limit = query.limit if most is None else min(query.limit, most)
    kinds = model.kinds
    shown = tuple((name, kinds[name]) for name in asked["columns"] or ())
    in_turn = order_columns(model, asked.get("order_by", ()))
    columns = tuple(dict.fromkeys([*dict(shown), *in_turn]))
    page: AskedRows = {**asked, "limit": limit + 1, "columns": columns}
    slices = view.row_slices(model.name, size=_ROWS, **page)
    last = asked.get("behind")
    writer = query.form(replace(model, columns=shown), view.published)
    read = written = size = 0
    for rows in slices:
        read += len(rows)
        if read > limit and limit < query.limit:
            return None
        if fitting := rows[: limit - written]:
            size += writer.write(fitting)
            written += len(fitting)
            last = row_place(model, in_turn, fitting, last)
        if size > MOST_BYTES:
            read += len(next(slices, ()))
            break
    is_truncated, next_ = read > written, None
    if is_truncated and last is not None:
        kinds_in_turn = order_kinds(model, asked.get("order_by", ()))
        next_ = query.cursors.write(since, last, kinds_in_turn)
    # A long body is put together here: the event loop has others to answer.
    body = writer.end(is_truncated=is_truncated, next_=next_)
    return WrittenRows(body, read, is_truncated, since, next_)


def _can_go_on(view: SnapshotView, query: PullQuery, since: Position) -> bool:
    """Return True if a page of this snapshot belongs to a walk that began at `since`.

    A walk that moves reads each row that stays the same once: its place in the order stays, too.
    The changes since the first page have all others.
    """
    if query.since is None:
        return True
    if query.is_moving:
        return view.knows_changes(query.model.name, since)
    return view.is_unchanged(query.model.name, since, query.asked["tenants"])


def row_place(
    model: ServedModel, in_turn: Sequence[str], rows: SomeRows, before: RowPlace | None
) -> RowPlace:
    """Return the place of the last row of a slice; `before`: of the slice before."""
    values = tuple(rows[-1][name] for name in in_turn)
    if model.row_key:
        return RowPlace(values)
    name, row_hash = in_turn[-1], values[-1]
    taken = sum(1 for _ in takewhile(lambda row: row[name] == row_hash, reversed(rows)))
    if taken == len(rows) and before is not None and before.values[-1] == row_hash:
        taken += before.taken
    return RowPlace(values, taken)


class JsonRows:
    """A JSON object with the snapshot's head and the rows. Like each form, it writes one answer.

    Args:
        model: with the columns that are shown.
        published: the snapshot of the rows.
    """

    def __init__(self, model: ServedModel, published: Published) -> None:
        opening = {"model": model.name, "window": None, **snapshot_head(published)}
        head = json_text({**opening, **age_of(published, model.name)})[:-1]
        self._model = model
        self._pieces = [f'{head},"rows":['.encode()]

    def write(self, rows: SomeRows) -> int:
        """Take rows; return about how many bytes they are."""
        text = json_text([json_row(self._model, row) for row in rows])[1:-1]
        separator = "," if len(self._pieces) > 1 else ""
        self._pieces.append(f"{separator}{text}".encode())
        return len(self._pieces[-1])

    def end(self, *, is_truncated: bool, next_: str | None) -> bytes:
        """Return the body; `is_truncated`: there are more rows, behind the cursor `next_`. Once."""
        tail = to_json({"is_truncated": is_truncated, "next": next_})
        return b"".join([*self._pieces, b"],", tail[1:]])


def json_row(model: ServedModel, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON values, as the change log writes them."""
    return {name: json_value(row[name], kind) for name, kind in model.columns}


class CsvRows:
    """RFC 4180, in UTF-8; NULL is an empty field, an empty string is a quoted one.

    Most readers pass over an empty line. So NULL in the only column is quoted, too, unless such a
    field is a value of the column.
    """

    def __init__(self, model: ServedModel, published: Published) -> None:
        self._columns = model.columns
        kinds = [kind for _, kind in model.columns]
        self._null = '""' if len(kinds) == 1 and kinds[0] not in _EMPTY_VALUES else ""
        self._pieces = [_csv_line(name for name, _ in model.columns).encode()]

    def write(self, rows: SomeRows) -> int:
        columns = self._columns
        lines = (
            _csv_line((_csv_value(kind, row[name]) for name, kind in columns), self._null)
            for row in rows
        )
        self._pieces.append("".join(lines).encode())
        return len(self._pieces[-1])

    def end(self, *, is_truncated: bool, next_: str | None) -> bytes:
        return b"".join(self._pieces)


def _csv_line(values: Iterable[Any], null: str = "") -> str:
    return ",".join(null if value is None else _csv_field(value) for value in values) + "\r\n"


def _csv_value(kind: str, value: Any) -> Any:
    """Return a value as JSON values; one of kind json, which may be a text, as its JSON."""
    if kind == "json" and value is not None:
        return json_text(value)
    return json_value(value, kind)


def _csv_field(plain: Any) -> str:
    text = plain if isinstance(plain, str) else json_text(plain)
    if text == "" or any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


class ArrowRows:
    """A stream of record batches; nested values are JSON texts, as the store keeps them."""

    def __init__(self, model: ServedModel, published: Published) -> None:
        self._columns = model.columns
        self._head = {**snapshot_head(published), **age_of(published, model.name)}
        self._schema = pa.schema([(name, _arrow_type(kind)) for name, kind in model.columns])
        self._batches: list[pa.RecordBatch] = []

    def write(self, rows: SomeRows) -> int:
        arrays = [
            pa.array([_arrow_value(kind, row[name]) for row in rows], _arrow_type(kind))
            for name, kind in self._columns
        ]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return int(self._batches[-1].nbytes)

    def end(self, *, is_truncated: bool, next_: str | None) -> bytes:
        members = {**self._head, "is_truncated": is_truncated}
        schema = self._schema.with_metadata({name: str(value) for name, value in members.items()})
        batches = [batch.replace_schema_metadata(schema.metadata) for batch in self._batches]
        sink = pa.BufferOutputStream()
        self._write(sink, schema, batches)
        return bytes(sink.getvalue())

    def _write(
        self, sink: pa.BufferOutputStream, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> None:
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


class ParquetRows(ArrowRows):
    """A Parquet file with the columns of the Arrow stream, and its metadata.

    Floats and doubles have no bounds: those of pyarrow leave NaN out. Spark and DuckDB hold it to
    be above all numbers, and would pass over it.
    """

    def _write(
        self, sink: pa.BufferOutputStream, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> None:
        bounded = [name for name, kind in self._columns if kind not in ("float", "double")]
        pq.write_table(pa.Table.from_batches(batches, schema), sink, write_statistics=bounded)


RowWriter = JsonRows | CsvRows | ArrowRows


def _arrow_type(kind: str) -> pa.DataType:
    size = decimal_size(kind)
    return pa.decimal128(*size) if size else _ARROW_TYPES[kind]


def _arrow_value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "timestamp_ntz":
        return value.replace(tzinfo=None)
    if kind == "float":
        # The shortest decimal names this float; its double may be nearer to another one.
        return nearest_single(repr(value))
    return json_text(value) if kind == "json" else value
