"""Tells when the newest rows of a landed table landed.

Used by `status` and by dbt's freshness of sources; the clock of records is another matter.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow.compute as pc
import pyarrow.dataset as pds

from livemart.delta.warehouse import Warehouse
from livemart.project.landing_columns import LANDED_AT

# File statistics tell times in milliseconds, an upper bound at most so much above the row.
_COARSE = timedelta(milliseconds=2)


def newest_landing(warehouse: Warehouse, relation: str, version: int | None) -> datetime | None:
    """Return when the newest row landed, from the few files that can hold it; None without rows."""
    bound = warehouse.highest(relation, LANDED_AT, version)
    near = pds.field(LANDED_AT) >= bound - _COARSE if isinstance(bound, datetime) else None
    times = warehouse.read(relation, version, columns=[LANDED_AT], filter=near)
    newest: datetime | None = pc.max(times[LANDED_AT]).as_py()
    return newest
