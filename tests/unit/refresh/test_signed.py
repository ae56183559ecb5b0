"""Which sums are exact, and the changed rows of an anchor as of one side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.arrow.bags import WEIGHT
from livemart.refresh.inputs import Side
from livemart.refresh.signed import _changed_rows, _holds


@pytest.mark.parametrize(
    ("total", "summed", "expected"),
    [
        (pa.int64(), pa.int32(), True),
        (pa.decimal128(20, 0), pa.int64(), True),
        (pa.decimal128(20, 2), pa.int64(), False),
        (pa.decimal128(22, 2), pa.decimal128(12, 2), True),
        (pa.decimal128(20, 2), pa.decimal128(12, 2), False),
        (pa.decimal128(22, 1), pa.decimal128(12, 2), False),
        (pa.float64(), pa.float64(), False),
        (pa.float64(), pa.int64(), False),
    ],
)
def test_a_sum_is_exact_if_its_type_holds_every_digit(
    total: pa.DataType, summed: pa.DataType, expected: bool
) -> None:
    assert _holds(total, summed) is expected


@pytest.mark.parametrize(("side", "expected"), [("new", ["b", "b"]), ("old", ["a"])])
def test_a_row_comes_as_often_as_it_came_or_went(side: Side, expected: list[str]) -> None:
    images = pa.table({"k": ["a", "b"], "n": [1, 2], WEIGHT: pa.array([-1, 2], pa.int64())})
    anchor = cast(Any, SimpleNamespace(images=images))

    rows = _changed_rows(anchor, side, ["k"])

    assert rows.to_pydict() == {"k": expected}
