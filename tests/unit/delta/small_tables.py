"""One small table, and changes of it."""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.tags import Tag

RELATION = "mart.totals"
SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])


def tag(version: int, **metadata: str) -> Tag:
    """Return the tag of a batch with its metadata."""
    return Tag("e1/mart.totals/0", version, metadata)


def diff(*rows: tuple[int, str, int, int]) -> pa.Table:
    """Return a change set of rows: id, name, copies before, copies after."""
    names = ["id", "name", OLD_COUNT, NEW_COUNT]
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
