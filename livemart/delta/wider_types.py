"""Gives columns of a table wider types in one commit: its files are written again, its rows stay.

Used by the warehouse. Delta can widen a type without touching a file (`typeWidening`), but such a
table is refused by deltalake, here and in other readers. The commit says that no data changed, so
that the change feed is empty, and it keeps id, properties and transactions of the table.
"""

from __future__ import annotations

import json

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import Schema as DeltaSchema

from livemart.delta.log import log_json, metadata_action, write_entry
from livemart.delta.small_lane import rewritten
from livemart.delta.tags import Tag
from livemart.delta.version import TableVersion


def commit_types(table: DeltaTable, files: TableVersion, schema: pa.Schema, tag: Tag) -> int:
    """Give a table the types of a schema; return the new version.

    Args:
        table: at its newest version.
        files: of that version.
        schema: the table's columns in types that hold all of their values.

    Raises:
        Taken: another writer committed in between; nothing was changed.
    """
    # One at a time: a bulk load has written files of any size.
    actions = [action for file in files.files() for action in rewritten(files, file, schema)]
    write_entry(
        files.storage,
        files.version + 1,
        [metadata_action(table, schema=_schema(table, schema)), *actions],
        operation="CHANGE COLUMN",
        tag=tag,
    )
    files.replaced(files.files())
    return files.version + 1


def _schema(table: DeltaTable, schema: pa.Schema) -> str:
    """Return the schema of a table as its log has it, with other types and no other difference."""
    stored = json.loads(table.schema().to_json())
    declared = {
        field["name"]: field["type"]
        for field in json.loads(DeltaSchema.from_arrow(schema).to_json())["fields"]
    }
    fields = [{**field, "type": declared[field["name"]]} for field in stored["fields"]]
    return log_json({**stored, "fields": fields})
