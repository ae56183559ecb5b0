"""Turns columns of times into microseconds since 1970.

Used by row filters, regions and panes. Times without a zone count as UTC; a date is its first
microsecond.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import one_array

# In microseconds. No stored time is farther from 1970 than EVER: the last one of Spark is no later.
DAY = 86_400_000_000
EVER = 2**63 - 1


def is_time(kind: pa.DataType) -> bool:
    """Return True for timestamps and dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def holds_time(kind: pa.DataType) -> bool:
    """Return True for timestamps and dates, and for types that hold one at any depth."""
    if not pa.types.is_nested(kind):
        return is_time(kind)
    return any(holds_time(kind.field(place).type) for place in range(kind.num_fields))


def micros_of(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return microseconds since 1970 (0 for NULL), and where the time is NULL."""
    array = one_array(column)
    is_null = np.asarray(array.is_null())
    if pa.types.is_date32(array.type):
        days = np.asarray(pc.fill_null(array.cast(pa.int32()).cast(pa.int64()), 0))
        return days * DAY, is_null
    moments = array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
    return np.asarray(pc.fill_null(moments, 0)), is_null
