"""Writes the rows of a served model: a net change onto the rows there, or all rows.

Used by the publishing transaction. A net change that does not fit the stored rows is refused, and
the model is copied whole instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from livemart.arrow.bags import WEIGHT
from livemart.publish.held_values import refuse_unheld
from livemart.publish.insert import KeyNotUniqueError, insert_all, refusing_keys
from livemart.store.column_types import stored_text, write_json
from livemart.store.schema import ROW_COUNT, ROW_HASH, Layout, bag_column, served_table
from livemart.store.served import Op, ServedModel
from livemart.store.value_forms import json_value, python_values

_SLICE = 5_000

_Values = tuple[Any, ...]


class RowsDifferError(Exception):
    """The rows that a change removes are not in the store, or those it adds already are."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of a row, as the change log keeps it; `replaced`: by an update, of the old row."""

    op: Op
    tenant: str | None
    row: dict[str, Any]
    replaced: dict[str, Any] | None = None


def weighted_rows(model: ServedModel, table: pa.Table) -> Iterator[tuple[_Values, int]]:
    """Yield each row, its values in the order of the model's columns, with its weight."""
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [python_values(part.column(name)) for name, _ in model.columns]
        yield from zip(zip(*columns, strict=True), part.column(WEIGHT).to_pylist(), strict=True)


def apply_change(connection: Connection, layout: Layout, change: pa.Table) -> list[RowChange]:
    """Apply a net change to a served table; return it row by row.

    Args:
        connection: in the publishing transaction.
        layout: of a table that holds the rows before the change.
        change: the model's columns plus `WEIGHT`, one row for each distinct row.

    Raises:
        RowsDifferError, KeyNotUniqueError: the state of the table is unknown; build it again.
    """
    rows = list(weighted_rows(layout.model, change))
    if layout.model.row_key:
        return _apply_to_keyed(connection, layout, rows)
    return _apply_to_bag(connection, layout, rows)


def fill(
    connection: Connection,
    layout: Layout,
    slices: Iterable[pa.Table],
    progress: Callable[[], None],
) -> int:
    """Make a served table that holds exactly these rows; return their number, repeats included.

    Args:
        connection: in the publishing transaction.
        layout: of a table that is not there yet.
        slices: the model's columns plus `WEIGHT`; equal rows may come more than once.
        progress: called often.

    Raises:
        KeyNotUniqueError: the table cannot have this key.
        UnheldValueError: the store cannot hold a value.
    """
    model, table, count = layout.model, served_table(layout), 0
    table.create(connection)
    for rows in slices:
        refuse_unheld(model, rows)
        if not model.row_key:
            count += _fill_bag(connection, layout, rows, progress)
            continue
        if any(weight != 1 for weight in pc.unique(rows.column(WEIGHT)).to_pylist()):
            raise KeyNotUniqueError(model.name)
        insert_all(connection, table, model, rows, progress)
        count += rows.num_rows
    return count


def row_hash(model: ServedModel, row: _Values) -> str:
    """Return a hash that identifies a row of a model without key."""
    text = write_json([json_value(value) for value in row])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _json_row(model: ServedModel, row: _Values, dialect_name: str) -> dict[str, Any]:
    """Return a row as JSON values by column name, with texts as the database holds them."""
    columns = zip(model.columns, row, strict=True)
    return {
        name: json_value(
            stored_text(value, dialect_name) if kind == "string" and value is not None else value,
            kind,
        )
        for (name, kind), value in columns
    }


def _apply_to_keyed(
    connection: Connection, layout: Layout, rows: Sequence[tuple[_Values, int]]
) -> list[RowChange]:
    model, table = layout.model, served_table(layout)
    dialect_name = connection.dialect.name
    at = _positions(model, model.row_key)
    old: dict[_Values, _Values] = {}
    new: dict[_Values, _Values] = {}
    for row, weight in rows:
        side = old if weight < 0 else new
        key = tuple(row[position] for position in at)
        if abs(weight) > 1 or key in side or None in key:
            raise KeyNotUniqueError(model.name)
        side[key] = row
    if old:
        names = [f"k{number}" for number in range(len(at))]
        where = [
            table.c[name] == sa.bindparam(bind, type_=table.c[name].type)
            for name, bind in zip(model.row_key, names, strict=True)
        ]
        keys = [dict(zip(names, key, strict=True)) for key in old]
        if connection.execute(sa.delete(table).where(*where), keys).rowcount != len(old):
            raise RowsDifferError(model.name)
    try:
        with refusing_keys(model):
            _execute_many(connection, sa.insert(table), table, list(new.values()))
    except KeyNotUniqueError as error:
        raise RowsDifferError(model.name) from error
    tenant_of, kinds = _tenant_reader(model), model.kinds
    changes: list[RowChange] = []
    for key, row in old.items():
        after = new.get(key)
        # A row that goes over to another tenant is gone for the one who had it.
        if after is None or tenant_of(after) != tenant_of(row):
            changes.append(RowChange("delete", tenant_of(row), _json_row(model, row, dialect_name)))
    for key, row in new.items():
        before, after_row = old.get(key), _json_row(model, row, dialect_name)
        if before is None or tenant_of(before) != tenant_of(row):
            changes.append(RowChange("insert", tenant_of(row), after_row))
            continue
        # Parsed JSON is compared as text: in Python 1, 1.0 and True are equal.
        replaced = {
            name: value
            for name, value in _json_row(model, before, dialect_name).items()
            if value != after_row[name]
            or (kinds[name] == "json" and write_json(value) != write_json(after_row[name]))
        }
        changes.append(RowChange("update", tenant_of(row), after_row, replaced))
    return changes


def _apply_to_bag(
    connection: Connection, layout: Layout, rows: Sequence[tuple[_Values, int]]
) -> list[RowChange]:
    model, table = layout.model, served_table(layout)
    dialect_name = connection.dialect.name
    hashes, counts = bag_column(model, ROW_HASH), bag_column(model, ROW_COUNT)
    tenant_of = _tenant_reader(model)
    changes: list[RowChange] = []
    removed, added = [], []
    for row, weight in rows:
        digest = row_hash(model, row)
        if weight < 0:
            removed.append((digest, weight))
        else:
            added.append((*row, digest, weight))
        op: Op = "delete" if weight < 0 else "insert"
        changes += [RowChange(op, tenant_of(row), _json_row(model, row, dialect_name))] * abs(
            weight
        )
    if removed:
        # A parameter of a column's name would be taken for what that column is to become.
        digest_name, weight_name = (bag_column(model, name) for name in ("_digest", "_weight"))
        less = sa.bindparam(weight_name, type_=sa.BigInteger)
        is_row = table.c[hashes] == sa.bindparam(digest_name, type_=table.c[hashes].type)
        fewer = (
            sa.update(table)
            .where(is_row, table.c[counts] + less >= 0)
            .values({table.c[counts]: table.c[counts] + less})
        )
        of_removed = [{digest_name: digest, weight_name: weight} for digest, weight in removed]
        if connection.execute(fewer, of_removed).rowcount != len(removed):
            raise RowsDifferError(model.name)
        emptied = sa.delete(table).where(is_row, table.c[counts] == 0)
        connection.execute(emptied, [{digest_name: digest} for digest, _ in removed])
    _add_to_bag(connection, layout, added)
    # Removed rows come first, so that a row never appears in two versions side by side.
    return sorted(changes, key=lambda change: change.op != "delete")


def _fill_bag(
    connection: Connection, layout: Layout, rows: pa.Table, progress: Callable[[], None]
) -> int:
    count = 0
    for start in range(0, rows.num_rows, _SLICE):
        totals: dict[str, tuple[_Values, int]] = {}
        for row, weight in weighted_rows(layout.model, rows.slice(start, _SLICE)):
            digest = row_hash(layout.model, row)
            totals[digest] = (row, weight + (totals[digest][1] if digest in totals else 0))
            count += weight
        bag = [(*row, digest, total) for digest, (row, total) in totals.items()]
        _add_to_bag(connection, layout, bag)
        progress()
    return count


def _add_to_bag(connection: Connection, layout: Layout, rows: Sequence[_Values]) -> None:
    """Add rows, each with its hash and number behind its values, to those that are there."""
    table = served_table(layout)
    hashes, counts = (bag_column(layout.model, name) for name in (ROW_HASH, ROW_COUNT))
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table)
    more = insert.on_conflict_do_update(
        index_elements=[table.c[hashes]],
        set_={table.c[counts].name: table.c[counts] + insert.excluded[counts]},
    )
    _execute_many(connection, more, table, rows)


def _execute_many(
    connection: Connection, statement: Any, table: sa.Table, rows: Sequence[_Values]
) -> None:
    names = [str(column.key) for column in table.columns]
    if rows:
        connection.execute(statement, [dict(zip(names, row, strict=True)) for row in rows])


def _positions(model: ServedModel, names: Sequence[str]) -> list[int]:
    order = [name for name, _ in model.columns]
    return [order.index(name) for name in names]


def _tenant_reader(model: ServedModel) -> Callable[[_Values], str | None]:
    if model.tenant_column is None:
        return lambda row: None
    (position,) = _positions(model, [model.tenant_column])
    return lambda row: None if row[position] is None else str(row[position])
