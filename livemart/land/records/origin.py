"""Says where a record came from: the place and its number there, in one text.

Used by the judge of records, for `_origin`, and to sort records in the order in which they arrived.
`orders/1.jsonl:7` is a line of a file, `orders/0@7` a record of a log's partition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ORIGIN = r"(?s)^(?P<place>.*)(?P<mark>[:@])(?P<number>[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Place:
    """A file below the landing folder, or a partition of a record log, as its mark says.

    >>> Place("orders/0", "@").origins([7, 8]).to_pylist()
    ['orders/0@7', 'orders/0@8']
    """

    name: str
    mark: Literal[":", "@"] = ":"

    def origins(self, numbers: Sequence[int]) -> pa.Array:
        """Return the origins of records as text."""
        texts = pa.array(np.fromiter(numbers, np.int64, len(numbers))).cast(pa.string())
        return pc.binary_join_element_wise(f"{self.name}{self.mark}", texts, "")


@dataclass(frozen=True, slots=True)
class Origin:
    """One record. `number`: line or element of a file, from 1; offset in a partition."""

    place: Place
    number: int


def read_origin(text: str) -> Origin | None:
    """Return the origin that a text writes, None for that of a whole file."""
    match = re.match(_ORIGIN, text)
    if match is None:
        return None
    mark: Literal[":", "@"] = "@" if match["mark"] == "@" else ":"
    return Origin(Place(match["place"], mark), int(match["number"]))


def in_arrival_order(origins: pa.ChunkedArray) -> pa.Array:
    """Return the positions of records by place and number: as text, line 10 is before line 2."""
    return pc.sort_indices(_split(origins), [("place", "ascending"), ("number", "ascending")])


def highest_numbers(origins: pa.ChunkedArray) -> dict[Place, int]:
    """Return the highest number of each place."""
    if not len(origins):
        return {}
    grouped = _split(origins).group_by(["place", "mark"]).aggregate([("number", "max")])
    return {
        Place(row["place"], row["mark"]): row["number_max"]
        for row in grouped.to_pylist()
        if row["place"] is not None
    }


def _split(origins: pa.ChunkedArray) -> pa.Table:
    parts = pc.extract_regex(origins, _ORIGIN).combine_chunks()
    names = ("place", "mark", "number")
    fields = {name: pc.struct_field(parts, name) for name in names}
    return pa.table(fields | {"number": fields["number"].cast(pa.int64())})
