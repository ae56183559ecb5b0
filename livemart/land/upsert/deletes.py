"""Says where deletes are remembered, so that an older version of a key stays deleted.

Used by landing of sources with keys. Models see live rows only: the deletes have a separate table
beside the landed one.
"""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.change_sets import as_added, as_removed
from livemart.land.records.schema import LANDING_FIELDS
from livemart.project.graph import RowRules, SourceTable
from livemart.project.landing_columns import RESCUED


def deletes_relation(source: SourceTable) -> str:
    """Return the table of a source's remembered deletes."""
    schema, identifier = source.relation.split(".", 1)
    return f"{schema}._deletes_{identifier}"


def deletes_schema(rules: RowRules, landed: pa.Schema) -> pa.Schema:
    """Return the columns of remembered deletes: keys, sequence, and where the delete came from."""
    names = dict.fromkeys([*rules.keys, *rules.sequence_by])
    added = [field for field in LANDING_FIELDS if field.name != RESCUED]
    return pa.schema([*(landed.field(name) for name in names), *added])


def remember(deleting: pa.Table, forgotten: pa.Table) -> pa.Table:
    """Return the change set of remembered deletes.

    Args:
        deleting: rows of the batch that delete their keys.
        forgotten: what was remembered of these keys before, in the columns of the table.
    """
    return pa.concat_tables(
        [as_removed(forgotten), as_added(deleting.select(forgotten.column_names))]
    )
