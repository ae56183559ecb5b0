"""Change sets of rows: added once, taken away once, counted."""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.change_sets import as_added, as_removed

ROWS = pa.table({"id": [1, 1]})


def test_rows_are_added_or_taken_away_one_copy_each() -> None:
    assert as_added(ROWS).to_pylist() == [{"id": 1, OLD_COUNT: 0, NEW_COUNT: 1}] * 2
    assert as_removed(ROWS).to_pylist() == [{"id": 1, OLD_COUNT: 1, NEW_COUNT: 0}] * 2
