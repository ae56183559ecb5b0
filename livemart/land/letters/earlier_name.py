"""Gives the column `reason` to tables that were made with its earlier name.

Used for dead letters and for the marks of those that were re-driven. Landing renames the column
before its first letter, a re-drive before its first mark; who reads takes the name that is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as pds

from livemart.delta.warehouse import Warehouse

_REASON, _EARLIER = "reason", "code"
# Without their records, so many letters are some 10 MiB.
MOST_KEYS = 65_536


def rename_reason(warehouse: Warehouse, relation: str) -> None:
    """Let a table's column have the name `reason`, if it was made with the earlier one."""
    if _EARLIER in warehouse.arrow_schema(relation).names:
        warehouse.rename_column(relation, _EARLIER, _REASON)


def stored_rows(
    warehouse: Warehouse,
    relation: str,
    columns: Sequence[str],
    condition: Callable[[str], pds.Expression],
    most: int | None = None,
) -> Iterator[pa.Table]:
    """Yield rows of a table, at most so many at a time, in the order of its files.

    Args:
        warehouse: the tables.
        relation: an existing table.
        columns: of the rows; `reason` is found under either name.
        condition: returns which rows are meant, given the name that `reason` has there.
        most: rows that are held at once; None for `MOST_KEYS`, without the records.
    """
    version = warehouse.version(relation)
    names = warehouse.arrow_schema(relation, version).names
    reason = _REASON if _REASON in names else _EARLIER
    stored = [reason if name == _REASON else name for name in columns]
    for rows in warehouse.batches(relation, version, stored, condition(reason), most or MOST_KEYS):
        yield rows.rename_columns(list(columns))
