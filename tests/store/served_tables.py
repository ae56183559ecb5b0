"""Tables of served models that a test holds in memory, version by version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Versions:
    """Reads versions by a function of relation, version before (None: of none), and version."""

    read: Callable[[str, Any, int], pa.Table]

    def change(self, relation: str, from_version: int, to_version: int) -> pa.Table:
        return self.read(relation, from_version, to_version)

    def rows(self, relation: str, version: int) -> Iterator[pa.Table]:
        rows = self.read(relation, None, version)
        yield from (rows.slice(0, 0), rows.slice(0, 2), rows.slice(2))
