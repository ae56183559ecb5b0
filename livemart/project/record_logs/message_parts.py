"""Reads `message` of a source: which columns take which parts of a message.

Used by the reader of sources of record logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from livemart.errors import nearest
from livemart.project.declared_columns import DeclaredColumns

# The parts, and the types that a column may have which holds one.
PART_TYPES: Mapping[str, tuple[str, ...]] = {
    "key": ("string", "binary"),
    "headers": (
        "map<string,string>",
        "array<struct<key:string,value:string>>",
        "array<struct<key:string,value:binary>>",
    ),
    "timestamp": ("timestamp",),
    "topic": ("string",),
    "partition": ("int", "bigint"),
    "offset": ("bigint",),
    "tombstone": ("boolean",),
}
TOMBSTONE = "tombstone"


def read_message_parts(
    value: object, columns: DeclaredColumns, refuse: Callable[[str, str], None]
) -> tuple[tuple[str, str], ...]:
    """Return part and column of each part of a message that a source takes.

    Args:
        value: of the key `message`.
        refuse: is called with each mistake: the value, and what should be there.
    """
    if not isinstance(value, Mapping):
        refuse(f"found {value!r}", "write parts with columns: `{key: order_key, offset: position}`")
        return ()
    parts = dict[str, str]()
    for part, column in value.items():
        if part not in PART_TYPES:
            refuse(
                f"found {part}{nearest(str(part), PART_TYPES)}",
                f"the parts are {', '.join(PART_TYPES)}",
            )
        elif not isinstance(column, str) or column not in columns.by_name:
            refuse(
                f"{part}: found column {column}{nearest(str(column), columns.by_name)}",
                "declare it under `columns` with its data_type, or name one that is declared",
            )
        elif (kind := columns.types().get(column)) and str(kind) not in PART_TYPES[part]:
            refuse(
                f"{part}: found column {column} of type {kind}",
                f"declare it as {' or '.join(PART_TYPES[part])}",
            )
        elif column in parts.values():
            refuse(f"{part}: found column {column} twice", "a column holds one part")
        else:
            parts[part] = column
    return tuple(sorted(parts.items()))
