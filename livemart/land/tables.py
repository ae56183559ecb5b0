"""Keeps the tables that landing writes as their sources declare them.

Used by landing before the first record, and for the columns of each batch. A table gains columns
and wider types, in place; a type that does not hold what is stored is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from livemart.arrow.types import plain_schema, widens
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.letters import dead_letters
from livemart.land.records.exact_values import TEXT
from livemart.land.records.schema import LANDING_NAMES, RecordSchema
from livemart.land.upsert.deletes import deletes_relation, deletes_schema
from livemart.project.graph import SourceTable
from livemart.project.spark_types import SparkType, parse_type
from livemart.spark.types import arrow_type_text
from livemart.spark_sql import stored_name


def require_fitting(warehouse: Warehouse, sources: Sequence[SourceTable]) -> None:
    """Refuse columns that the tables, as they are, cannot follow; nothing is changed.

    Raises:
        StateError: LANDED_COLUMN_CHANGED, naming every such column.
    """
    misfits = [
        f"{source.file}: {source.relation}: {misfit}"
        for source in sources
        for misfit in _misfits(warehouse, source)
    ]
    for letters in sorted({dead_letters.relation_of(source.schema) for source in sources}):
        stored = warehouse.column_kinds(letters)
        if stored is not None and [*stored] != dead_letters.LETTERS.names:
            misfits.append(
                f"{letters}: dead letters of another version of livemart, with the columns "
                f"{', '.join(stored)}: move {warehouse.location(letters)} away"
            )
    if misfits:
        raise StateError(
            "LANDED_COLUMN_CHANGED",
            "\n".join(misfits),
            hint="declare each column as the landed table has it and cast in the model, or give "
            "it a new name. To land the files in the landing folder again, remove the "
            "table and run `build --new-epoch`",
        )


def create_tables(warehouse: Warehouse, sources: Sequence[SourceTable], epoch: str) -> bool:
    """Create missing tables; add columns and widen types that were declared since.

    Returns:
        True if a table that was there before has other columns or types now.

    Raises:
        StateError: LANDED_COLUMN_CHANGED, before any table is changed.
    """
    require_fitting(warehouse, sources)
    has_changed = False
    for source in sources:
        landed = RecordSchema.of(source).landed
        tables = {source.relation: landed}
        if source.stream is not None and source.stream.row_rules.keys:
            tables[deletes_relation(source)] = deletes_schema(source.row_rules, landed)
        for relation, declared in tables.items():
            if warehouse.exists(relation):
                has_changed |= _follow(warehouse, relation, declared, epoch)
            else:
                warehouse.create(relation, declared)
        letters = dead_letters.relation_of(source.schema)
        if not warehouse.exists(letters):
            warehouse.create(letters, dead_letters.LETTERS)
    return has_changed


def record_schema(warehouse: Warehouse, source: SourceTable) -> RecordSchema:
    """Return the columns of a source's records: declared ones, then the others of its table.

    Drift brought those, or they were declared once: they go on as the table holds them.
    """
    added = undeclared_fields(warehouse, source)
    return RecordSchema.of(source, [(field.name, _stored_kind(field.type)) for field in added])


def undeclared_fields(warehouse: Warehouse, source: SourceTable) -> list[pa.Field]:
    """Return the columns of a landed table that neither its source nor landing itself names."""
    names = {*RecordSchema.of(source).names, *LANDING_NAMES}
    return [field for field in warehouse.arrow_schema(source.relation) if field.name not in names]


def _stored_kind(kind: pa.DataType) -> SparkType:
    return SparkType(TEXT) if pa.types.is_string(kind) else parse_type(arrow_type_text(kind))


def _misfits(warehouse: Warehouse, source: SourceTable) -> Iterator[str]:
    """Yield the mistake of each column that its table cannot follow."""
    # Also where the landed table was removed and the deletes that it remembers were not.
    yield from _unordered(warehouse, source)
    if not warehouse.exists(source.relation):
        return
    stored = warehouse.arrow_schema(source.relation)
    for field in plain_schema(RecordSchema.of(source).landed):
        if field.name not in stored.names:
            if (name := stored_name(field.name, stored.names)) is not None:
                yield (
                    f"column {field.name} is declared, the landed table calls it {name}: Spark "
                    f"does not tell the two apart; declare {name}, and let the records say so"
                )
            continue
        held = stored.field(field.name).type
        if not widens(held, field.type):
            declared_type, stored_type = arrow_type_text(field.type), arrow_type_text(held)
            why = f", which is wider: declare {stored_type}" if widens(field.type, held) else ""
            yield (
                f"column {field.name} is declared as {declared_type}, "
                f"the landed table holds {stored_type}{why}"
            )


def _unordered(warehouse: Warehouse, source: SourceTable) -> Iterator[str]:
    """Yield keys and sequence by which the rows landed before cannot be compared."""
    deletes = deletes_relation(source)
    if not source.row_rules.keys or not warehouse.exists(deletes):
        return
    stored = warehouse.arrow_schema(deletes).names
    columns = deletes_schema(source.row_rules, RecordSchema.of(source).landed)
    if missing := [name for name in columns.names if name not in stored]:
        yield (
            f"keys and sequence have {', '.join(missing)}, by which what was landed before is not "
            f"ordered: land it under another name (`identifier`), or remove {deletes} as well"
        )


def _follow(warehouse: Warehouse, relation: str, declared: pa.Schema, epoch: str) -> bool:
    """Give a table the columns and types that were declared since; return True if it lacked any."""
    types = {field.name: field.type for field in plain_schema(declared)}
    tag = Tags(epoch, 0).columns(relation)
    stored = warehouse.arrow_schema(relation)
    missing = [field for field in plain_schema(declared) if field.name not in stored.names]
    if missing:
        warehouse.add_columns(relation, missing, tag)
        stored = warehouse.arrow_schema(relation)
    wider = pa.schema([field.with_type(types.get(field.name, field.type)) for field in stored])
    if wider != stored:
        warehouse.widen(relation, wider, tag)
    return bool(missing) or wider != stored
