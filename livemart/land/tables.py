"""Creates the tables that landing writes, and adds columns that were declared since.

Used by landing before the first record, and for the columns of each batch. A column keeps the type
that it was created with.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from livemart.arrow.types import plain_schema
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.letters import dead_letters
from livemart.land.letters.earlier_name import rename_reason
from livemart.land.records.schema import LANDING_NAMES, RecordSchema
from livemart.land.upsert.deletes import deletes_relation, deletes_schema
from livemart.project.graph import SourceTable
from livemart.spark.types import arrow_type_text
from livemart.spark_sql import stored_name


def create_tables(warehouse: Warehouse, sources: Sequence[SourceTable], epoch: str) -> None:
    """Create what is missing and add columns that were declared since.

    Raises:
        StateError: LANDED_COLUMN_CHANGED, if a column is declared with another type than it has.
    """
    for source in sources:
        declared = RecordSchema.of(source).landed
        if warehouse.exists(source.relation):
            _widen(warehouse, source, declared, epoch)
        else:
            warehouse.create(source.relation, declared)
        if source.stream is not None and source.stream.keys:
            relation = deletes_relation(source)
            if not warehouse.exists(relation):
                warehouse.create(relation, deletes_schema(source, declared))
        letters = dead_letters.relation_of(source.schema)
        if warehouse.exists(letters):
            rename_reason(warehouse, letters)
        else:
            warehouse.create(letters, dead_letters.LETTERS)


def record_schema(warehouse: Warehouse, source: SourceTable) -> RecordSchema:
    """Return the columns of a source's records: declared ones, then those that drift brought."""
    declared = {column.name for column in source.columns}
    stored = warehouse.arrow_schema(source.relation).names
    added = [name for name in stored if name not in declared and name not in LANDING_NAMES]
    return RecordSchema.of(source, added)


def _widen(warehouse: Warehouse, source: SourceTable, declared: pa.Schema, epoch: str) -> None:
    stored = warehouse.arrow_schema(source.relation)
    columns = plain_schema(declared)
    missing = [field for field in columns if field.name not in stored.names]
    for field in missing:
        if (known := stored_name(field.name, stored.names)) is not None:
            raise StateError(
                "LANDED_COLUMN_CHANGED",
                f"{source.file}: {source.relation}: column {field.name} is declared, the landed "
                f"table calls it {known}: Spark does not tell the two apart",
                hint=f"declare {known}, and let the records say so, or choose another name; to land"
                " what still lies below the landing folder again, remove the table and run "
                "`build --new-epoch`",
            )
    for field in columns:
        if field.name in stored.names and stored.field(field.name).type != field.type:
            raise StateError(
                "LANDED_COLUMN_CHANGED",
                f"{source.file}: {source.relation}: column {field.name} is declared as "
                f"{arrow_type_text(field.type)}, the landed table holds "
                f"{arrow_type_text(stored.field(field.name).type)}",
                hint="declare the type it has, or a new column beside it; to land what still lies "
                "below the landing folder again, remove the table and run `build --new-epoch`",
            )
    if missing:
        warehouse.add_columns(source.relation, missing, Tags(epoch, 0).columns(source.relation))
