"""Keeps Spark from storing other values than a model has in its partition columns.

Used when the project is read, and before Spark writes a table. The value of a partition passes
through the name of a folder, and no setting of Spark 4.2 or Delta 4.4 says otherwise:

- a timestamp is spelled by the clock of the session and read again by it
  (`DelayedCommitProtocol.parsePartitions`). If an hour comes twice, when that clock is put back,
  the second becomes the first. A year before 1 is written without its era, and becomes another.
  Such a row ends the statement;
- a day or time of a far year is stored as it is, but then other readers do not open the table. It
  ends the statement, too;
- bytes are spelled as text, so those that are no UTF-8 become others: the type is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from livemart.spark_sql import literal, quoted, unquoted

CODE = "PARTITION_VALUES_LOST"
# The first year that deltalake 1.6.6 does not read, before and after the year 0 (of chrono).
FAR_YEAR = 262_142
FAR_HINT = "bound the values, as with least(...), or partition by another column"
BINARY_HINT = "partition by a text, such as hex(...) or base64(...)"
_FAR = f"{FAR_YEAR:,} years or more from the year 0: readers except Spark refuse such a table"
_FIRST = "timestamp'0001-01-01 00:00:00Z'"
_ANOTHER = (
    "before the year 1, or the second of two such hours, as the clock of the session is put back: "
    "Spark would store another one"
)
_INSTANT_HINT = (
    "partition by a day, cast(... as date), or by a timestamp_ntz, or let the session be in UTC "
    "(spark.sql.session.timeZone)"
)


def lost_bytes(partition_by: Iterable[str], types: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the mistake of each partition column of bytes.

    Args:
        partition_by: names, as they are written.
        types: Spark's type of each column, by name; None and a missing one: unknown.

    >>> list(lost_bytes(["`k`"], {"K": "binary"}))
    ['found `k`, a binary: Spark would store bytes that are no UTF-8 as others']
    """
    kinds = {name.lower(): (kind or "").strip().lower() for name, kind in types.items()}
    for name in partition_by:
        if kinds.get(unquoted(name).lower()) == "binary":
            yield f"found {name}, a binary: Spark would store bytes that are no UTF-8 as others"


def far(text: str) -> str:
    """Return the finding of a day or time by which Spark alone could read a table."""
    return f"found {text}, {_FAR}"


def kept_time(name: str, kind: str, place: str) -> str | None:
    """Return SQL of a day or time that ends its statement if it would be lost in a partition.

    The macro `livemart_kept_values` has the same words.

    Args:
        name: of the column, without quotes.
        kind: its type; None is returned for one of other values.
        place: of the table, for the message.
    """
    whens = [
        f"when {condition} then {_stopped(name, place, why, hint)}"
        for condition, why, hint in _losses(name, kind)
    ]
    return f"case {' '.join(whens)} else {quoted(name)} end" if whens else None


def lost_time(name: str, kind: str) -> str | None:
    """Return the condition that a day or time would be lost, as `kept_time` sees it."""
    return " or ".join(condition for condition, *_ in _losses(name, kind)) or None


def _losses(name: str, kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield conditions of values that are lost; why, and the way out."""
    column = quoted(name)
    if kind in ("date", "timestamp", "timestamp_ntz"):
        yield f"abs(year({column})) >= {FAR_YEAR}", _FAR, FAR_HINT
    if kind == "timestamp":
        is_kept = f"{column} >= {_FIRST} and cast(cast({column} as string) as timestamp) = {column}"
        yield f"not ({is_kept})", _ANOTHER, _INSTANT_HINT


def _stopped(name: str, place: str, why: str, hint: str) -> str:
    message, way_out = f"{CODE}: {place}: partition_by: found {name} = ", f", {why}; next: {hint}"
    value = f"cast({quoted(name)} as string), ' ', current_timezone()"
    return f"raise_error(concat({literal(message)}, {value}, {literal(way_out)}))"
