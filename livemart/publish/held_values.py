"""Finds a time that the serving store cannot hold, and names its row.

Used before the rows of a model are written. SQLite would take it and its readers would then fail;
a driver's own error does not say which value it was.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from livemart.epoch import day_text, epoch_micros, timestamp_text
from livemart.store.served import ServedModel
from livemart.store.value_forms import json_value, python_values

_MICROS_OF_A_DAY = 86_400_000_000
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_FIRST = epoch_micros(datetime.min.replace(tzinfo=UTC))
_LAST = epoch_micros(datetime.max.replace(tzinfo=UTC))
_SHOWN = 200


class UnheldValueError(ValueError):
    """A value that the store cannot hold; the message says its column and its row."""


def refuse_unheld(model: ServedModel, rows: pa.Table) -> None:
    """Raise UnheldValueError for the first time outside of the years 1 to 9999.

    Args:
        rows: the model's columns; others are left out.
    """
    for name, _ in model.columns:
        start = 0
        for chunk in rows.column(name).chunks:
            if (beyond := _first_beyond(chunk)) is not None:
                place, text = beyond
                raise UnheldValueError(
                    f"{name}: {text} is outside of the years 1 to 9999, in the row "
                    f"{_shown_row(model, rows.slice(start + place, 1), name)}"
                )
            start += len(chunk)


def _first_beyond(column: pa.Array) -> tuple[int, str] | None:
    """Return the place and text of the first time that Python does not have; None without one."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _first_beyond(column.dictionary_decode())
    if types.is_map(kind):
        entries = pa.struct([pa.field("key", kind.key_type, False), ("value", kind.item_type)])
        return _first_beyond(column.cast(pa.list_(pa.field("entries", entries, False))))
    if types.is_struct(kind):
        firsts = [at for part in column.flatten() if (at := _first_beyond(part)) is not None]
        return min(firsts, default=None)
    if types.is_nested(kind):
        inside = _first_beyond(column.flatten())
        return inside and (pc.list_parent_indices(column)[inside[0]].as_py(), inside[1])
    if not (types.is_date32(kind) or types.is_timestamp(kind)):
        return None
    unit = None if types.is_date32(kind) else _NANOSECONDS[kind.unit]
    counts = column.cast(pa.int32() if unit is None else pa.int64())
    # Bounds in the column's own unit: a conversion of the column could overflow.
    first, last = (
        bound // _MICROS_OF_A_DAY if unit is None else bound * 1_000 // unit
        for bound in (_FIRST, _LAST)
    )
    bounds = pc.min_max(counts)
    if not bounds["min"].is_valid or (
        bounds["min"].as_py() >= first and bounds["max"].as_py() <= last
    ):
        return None
    beyond = pc.or_(pc.less(counts, first), pc.greater(counts, last))
    place = pc.index(beyond, True).as_py()
    count = counts[place].as_py()
    return place, day_text(count) if unit is None else timestamp_text(count * unit)


def _shown_row(model: ServedModel, row: pa.Table, beyond: str) -> str:
    """Return the key of a row, or its columns beside the value."""
    names = model.row_key or tuple(name for name, kind in model.columns if kind != "json")
    parts = [
        f"{name} = {_shown(row.column(name), model.kinds[name])}"
        for name in names
        if name != beyond
    ]
    return ", ".join(parts)[:_SHOWN] or "that has no other column"


def _shown(column: pa.ChunkedArray, kind: str) -> str:
    try:
        plain: Any = python_values(column)[0]
    except (OverflowError, ValueError):
        return "?"
    return str(json_value(plain, kind))
