"""Keeps Spark from storing other values than a model has in its partition columns.

Used when the project is read, and before Spark writes a table. The value of a partition passes
through the name of a folder, and no setting of Spark 4.2 or Delta 4.4 says otherwise:

- a timestamp is spelled by the clock of the session and read again by it
  (`DelayedCommitProtocol.parsePartitions`). If an hour comes twice, when that clock is put back,
  the second becomes the first: such a row ends the statement;
- bytes are spelled as text, so those that are no UTF-8 become others: the type is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from livemart.spark_sql import literal, quoted, unquoted

CODE = "PARTITION_VALUES_LOST"
BINARY_HINT = "partition by a text, such as hex(...) or base64(...)"
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


def kept_instant(name: str, place: str) -> str:
    """Return SQL of a timestamp that ends its statement where Spark would store another one.

    The macro `livemart_kept_values` has the same words.

    Args:
        name: of the column, without quotes.
        place: of the table, for the message.
    """
    column = quoted(name)
    message = f"{CODE}: {place}: partition_by: found {name} = "
    why = (
        ", the second of two such hours, as the clock of the session is put back: Spark would "
        f"store the first; next: {_INSTANT_HINT}"
    )
    return (
        f"if(cast(cast({column} as string) as timestamp) <=> {column}, {column}, "
        f"raise_error(concat({literal(message)}, cast({column} as string), ' ', "
        f"current_timezone(), {literal(why)})))"
    )
