"""Turns times into microseconds since 1970, and back into bounds of a type.

Used by row filters, regions and panes. Times without a zone count as UTC; a date is its first
microsecond. Dates end later than microseconds do: those behind `EVER` count as one moment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import one_array
from livemart.arrow.variants import holds_type

# In microseconds. No time counts as farther from 1970 than EVER: Spark's last one is no later.
DAY = 86_400_000_000
EVER = 2**63 - 1
_LAST_DAY = EVER // DAY


def is_time(kind: pa.DataType) -> bool:
    """Return True for timestamps and dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def holds_time(kind: pa.DataType) -> bool:
    """Return True for timestamps and dates, and for types that hold one at any depth."""
    return holds_type(kind, is_time)


def micros_of(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return microseconds since 1970 (0 for NULL), and where the time is NULL."""
    array = one_array(column)
    is_null = np.asarray(array.is_null())
    if pa.types.is_date32(array.type):
        days = np.asarray(pc.fill_null(array.cast(pa.int32()).cast(pa.int64()), 0))
        within = np.clip(days, -_LAST_DAY, _LAST_DAY)
        return np.where(days == within, days * DAY, np.sign(days) * EVER), is_null
    moments = array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
    return np.maximum(pc.fill_null(moments, 0), -EVER), is_null


def bounding_times(
    micros: npt.NDArray[np.int64], kind: pa.DataType, *, rounds_up: bool = False
) -> pa.Array:
    """Return times of a type as bounds: -EVER and EVER are the first and the last of the type.

    By way of numbers, as not every stored time is in the years that Python knows.

    Args:
        micros: since 1970, at most EVER from it.
        kind: of timestamps in microseconds, or date.
        rounds_up: the bound is the first date that does not begin before, not the last.

    >>> micros = np.array([1])
    >>> bounding_times(micros, pa.date32())[0].as_py()
    datetime.date(1970, 1, 1)
    >>> bounding_times(micros, pa.date32(), rounds_up=True)[0].as_py()
    datetime.date(1970, 1, 2)
    """
    is_date = pa.types.is_date32(kind)
    limits = np.iinfo(np.int32 if is_date else np.int64)
    numbers = micros
    if is_date:
        numbers = -(-micros // DAY) if rounds_up else micros // DAY
    numbers = np.where(micros >= EVER, limits.max, np.where(micros <= -EVER, limits.min, numbers))
    return pa.array(numbers.astype(limits.dtype)).cast(kind)
