"""Gives a table the retention that the operator has set.

Used by the warehouse. A table is created with the usual retention. One that says another, as a
model's `tblproperties` may, keeps it; one that was given it here follows the setting. The commit
changes no row, and readers of changes pass over it.
"""

from __future__ import annotations

from datetime import timedelta

from deltalake import DeltaTable

from livemart.delta.log import PROPERTIES_ONLY, metadata_action, write_entry
from livemart.delta.properties import RETENTION, retention_properties
from livemart.delta.tags import Tag
from livemart.delta.version import TableVersion

_APP_ID = "livemart/retention"
# The table's own note of what it was given here.
_GIVEN = "livemart.retention"


def commit_retention(table: DeltaTable, files: TableVersion, retention: timedelta) -> bool:
    """Give the newest version of a table a retention; return False if it has that, or its own.

    Raises:
        Taken: another writer committed in between; nothing was changed.
    """
    configuration = dict(table.metadata().configuration)
    usual, asked = retention_properties(RETENTION), retention_properties(retention)
    given = configuration.get(_GIVEN)
    followed = {
        name: value
        for name, value in asked.items()
        if configuration.get(name) in {usual[name], given} - {None, value}
    }
    if not followed:
        return False
    (text,) = set(asked.values())
    write_entry(
        files.storage,
        files.version + 1,
        [metadata_action(table, configuration={**configuration, **followed, _GIVEN: text})],
        operation="SET TBLPROPERTIES",
        tag=Tag(_APP_ID, files.version + 1, PROPERTIES_ONLY),
    )
    return True
