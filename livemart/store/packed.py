"""Reads thousands of whole numbers as one row: the database joins them to a text.

Used for the panes of a chart. A driver hands over row by row; between two rows its thread releases
the interpreter and waits to get it back. Beside a busy event loop thousands of rows take several
times as long as they cost, and hold up every other answer meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from livemart.store.value_forms import TIMESTAMPS, decimal_size

Packed = Mapping[str, Sequence[int | None]]
_NULL = "null"
_MICROSECONDS = 1_000_000


def pack(column: sa.ColumnElement[Any], kind: str, dialect_name: str) -> sa.ColumnElement[str]:
    """Return the expression that joins the values of all rows of a group.

    Raises:
        ValueError: the column does not hold whole numbers, decimals or times.
    """
    if kind not in ("bigint", "int", *TIMESTAMPS) and decimal_size(kind) is None:
        raise ValueError(f"{column}: found {kind}, which is not packed")
    value: sa.ColumnElement[Any] = sa.type_coerce(column, sa.Text)
    if dialect_name == "postgresql":
        if kind in TIMESTAMPS:
            seconds = sa.extract("epoch", sa.type_coerce(column, sa.DateTime(timezone=True)))
            column = sa.cast(seconds * _MICROSECONDS, sa.BigInteger)
        value = sa.cast(column, sa.Text)
    joined: sa.ColumnElement[str] = sa.func.aggregate_strings(sa.func.coalesce(value, _NULL), ",")
    return joined


def unpack(names: Sequence[str], texts: Sequence[str], *, is_bag: bool) -> Packed:
    """Return the values by column: a decimal in units of its last digit, a time in microseconds.

    Args:
        names: of the columns.
        texts: the joined values of each column; for a bag the count of each row comes last.
        is_bag: the model has no key.

    >>> unpack(["sales"], ["12.50,-0.07"], is_bag=False)
    {'sales': [1250, -7]}
    >>> unpack(["sales"], ["12.50,null", "2,1"], is_bag=True)
    {'sales': [1250, 1250, None]}
    """
    columns = [_numbers(text) for text in texts]
    if is_bag:
        *columns, counts = columns
        columns = [
            [value for value, n in zip(values, counts, strict=True) for _ in range(n or 0)]
            for values in columns
        ]
    return dict(zip(names, columns, strict=True))


def _numbers(text: str) -> list[int | None]:
    if "." not in text:
        numbers: list[int | None] = json.loads(f"[{text}]")
        return numbers
    # A decimal has all the digits of its scale, so without the point it is a whole number.
    parts = text.replace(".", "").split(",")
    if _NULL in text:
        return [None if part == _NULL else int(part) for part in parts]
    return list(map(int, parts))
