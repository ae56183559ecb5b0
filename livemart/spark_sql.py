"""Spells names and values as Spark SQL reads them.

Used wherever SQL is written. Every name is quoted and every text escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal


def quoted(name: str) -> str:
    """Quote an identifier, or the path of a table.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """Return a name that may be written with quotes around it.

    >>> unquoted(" `a``b` ")
    'a`b'
    """
    name = name.strip()
    if len(name) > 1 and name.startswith("`") and name.endswith("`"):
        return name[1:-1].replace("``", "`")
    return name


def stored_name(name: str, names: Iterable[str]) -> str | None:
    """Return how a table spells a column, None if it has none of this name.

    Spark finds columns whatever their letter case, and no table has two that differ in it alone.

    >>> stored_name("customerkey", ["CustomerKey", "n"])
    'CustomerKey'
    """
    lowered = name.lower()
    return next((stored for stored in names if stored.lower() == lowered), None)


def literal(value: object) -> str:
    r"""Write a string, number, boolean, date, timestamp or binary value.

    >>> print(literal("Joe's"))
    'Joe\'s'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        zone = "+00:00" if value.tzinfo is not None else ""
        kind = "timestamp" if value.tzinfo is not None else "timestamp_ntz"
        return f"{kind}'{value.strftime('%Y').zfill(4)}-{value:%m-%d %H:%M:%S.%f}{zone}'"
    if isinstance(value, date):
        return f"date'{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        # With an exponent it would be a double.
        return format(value, "f")
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
