"""Stored groups plus a signed change: the same rows as counting again from scratch."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.plan.strategies.signed import Output
from livemart.refresh.signed_groups import SIGN, DoubtfulSum, combine_groups, moved_groups

_SCHEMA = pa.schema([("dish", pa.string()), ("sold", pa.int64()), ("sales", pa.decimal128(18, 2))])
_OUTPUTS = (Output("dish", "key"), Output("sold", "count_rows"), Output("Sales", "sum"))
_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, Decimal("0.00"), Decimal("2.50"), Decimal("-2.50")]),
    ),
    max_size=6,
)


def _grouped(rows: list[tuple[Any, Any]]) -> set[tuple[Any, int, Any]]:
    found = set()
    for key in {key for key, _ in rows}:
        values = [value for own, value in rows if own == key]
        known = [value for value in values if value is not None]
        found.add((key, len(values), sum(known) if known else None))
    return found


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    names = schema.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


def _combined(
    stored: set[tuple[Any, int, Any]],
    leaving: list[tuple[Any, Any]],
    coming: list[tuple[Any, Any]],
) -> set[tuple[Any, int, Any]]:
    wide = _SCHEMA.append(pa.field(SIGN, pa.int32()))
    stacked = [(*row, 1) for row in _grouped(coming)] + [(*row, -1) for row in _grouped(leaving)]
    change = moved_groups(_table(stacked, wide), _OUTPUTS)
    moved = combine_groups(_SCHEMA, _OUTPUTS, change, _table(list(stored), _SCHEMA))
    result = set(stored)
    for row in moved.to_pylist():
        values = (row["dish"], row["sold"], row["sales"])
        assert (row[OLD_COUNT], row[NEW_COUNT]) in ((1, 0), (0, 1))
        if row[OLD_COUNT]:
            assert values in stored
            result.discard(values)
    for row in moved.to_pylist():
        if row[NEW_COUNT]:
            result.add((row["dish"], row["sold"], row["sales"]))
    return result


@given(kept=_ROWS, leaving=_ROWS, coming=_ROWS)
def test_moving_groups_is_counting_again(
    kept: list[tuple[Any, Any]], leaving: list[tuple[Any, Any]], coming: list[tuple[Any, Any]]
) -> None:
    stored = _grouped(kept + leaving)
    try:
        found = _combined(stored, leaving, coming)
    except DoubtfulSum:
        # Only a value that is not NULL and went away can leave doubt behind.
        assert any(value is not None for _, value in leaving)
        return

    assert found == _grouped(kept + coming)


def test_a_sum_that_may_have_lost_its_last_value_is_doubtful() -> None:
    stored = {("a", 2, Decimal("2.50"))}

    with pytest.raises(DoubtfulSum):
        _combined(stored, [("a", Decimal("2.50"))], [])


def test_a_group_that_was_never_there_cannot_shrink() -> None:
    with pytest.raises(DoubtfulSum):
        _combined(set(), [("a", Decimal("2.50"))], [])


def test_a_group_without_rows_leaves() -> None:
    stored = {("a", 1, Decimal("2.50")), ("b", 1, None)}

    assert _combined(stored, [("a", Decimal("2.50"))], []) == {("b", 1, None)}
