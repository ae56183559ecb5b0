"""Which rows came and went between two versions, as far as that is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from livemart.arrow.bags import WEIGHT
from livemart.check.versions import CheckedVersions, repeated_rows, rows_of_sign
from livemart.errors import RefreshError

LATER = CheckedVersions({"m.a": 1, "m.b": 1}, {"m.a": 2, "m.b": 1, "m.c": 1})
CHANGES = pa.table({"k": ["a", "b"], WEIGHT: pa.array([2, -3], pa.int64())})


def warehouse(changes: pa.Table | None) -> Any:
    def between(relation: str, before: int, now: int) -> pa.Table:
        if changes is None:
            raise RefreshError("CDF_UNAVAILABLE", relation, hint="")
        return changes

    return cast(Any, SimpleNamespace(changes=between))


def test_rows_that_came_are_apart_from_rows_that_went() -> None:
    went = repeated_rows(warehouse(CHANGES), LATER, "m.a", -1)
    came = rows_of_sign(warehouse(CHANGES), LATER, "m.a", 1)

    assert came is not None and came.to_pydict() == {"k": ["a"], WEIGHT: [2]}
    assert went is not None and went.to_pydict() == {"k": ["b", "b", "b"]}


def test_nothing_is_known_of_a_new_table_or_of_a_change_that_is_gone() -> None:
    assert rows_of_sign(warehouse(CHANGES), LATER, "m.c", 1) is None
    assert rows_of_sign(warehouse(None), LATER, "m.a", 1) is None


def test_a_table_at_the_version_of_the_frontier_is_unchanged() -> None:
    assert [LATER.is_unchanged(name) for name in ("m.a", "m.b", "m.c", "m.d")] == [
        *(False, True, False, False)
    ]
