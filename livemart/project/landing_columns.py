"""Names the columns that landing adds to a source's own.

Used by landing, which writes them, and by the planner, which knows of them before a table exists.
They begin with an underscore, so no declared column can have one of these names.
"""

from __future__ import annotations

LANDED_AT = "_landed_at"
BATCH_ID = "_batch_id"
ORIGIN = "_origin"
RESCUED = "_rescued_data"

LANDING_COLUMNS = (LANDED_AT, BATCH_ID, ORIGIN, RESCUED)

# For a source whose records are changes of a database's rows: the operation, its position in the
# database's log, and the columns that the record did not hold.
OPERATION = "_operation"
SEQUENCE = "_sequence"
KEPT = "_kept_values"

ENVELOPE_COLUMNS = (OPERATION, SEQUENCE, KEPT)
