"""Deletes that are remembered, so that an older version of a key stays deleted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from livemart.arrow.bags import row_codes
from livemart.arrow.change_sets import as_added, as_removed
from livemart.land.records.schema import LANDING_FIELDS, RESCUED
from livemart.project.graph import SourceTable


def deletes_relation(source: SourceTable) -> str:
    """Return the table of a source's remembered deletes."""
    schema, identifier = source.relation.split(".", 1)
    return f"{schema}._deletes_{identifier}"


def deletes_schema(source: SourceTable, landed: pa.Schema) -> pa.Schema:
    """Return the columns of remembered deletes: keys, sequence, and where the delete came from."""
    names = dict.fromkeys([*source.arrival.keys, *source.arrival.sequence_by])
    added = [field for field in LANDING_FIELDS if field.name != RESCUED]
    return pa.schema([*(landed.field(name) for name in names), *added])


def remember(deleting: pa.Table, remembered: pa.Table, keys: list[str]) -> pa.Table:
    """Return the change set that replaces what is remembered of keys that are deleted once more.

    Args:
        deleting: rows of the batch that delete their keys.
        remembered: what is remembered of the batch's keys.
        keys: names of the key columns.
    """
    both = pa.concat_tables([remembered.select(keys), deleting.select(keys)]).combine_chunks()
    codes = row_codes([both.column(name) for name in keys], len(both))
    split = remembered.num_rows
    replaced = remembered.filter(pa.array(np.isin(codes[:split], codes[split:])))
    return pa.concat_tables(
        [as_removed(replaced), as_added(deleting.select(remembered.column_names))]
    )
