"""Stored groups plus a signed change: the same rows as counting again from scratch."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits
from livemart.plan.reasons import Inapplicable
from livemart.plan.strategies.signed import Output
from livemart.refresh.signed_groups import SIGN, combine_groups, moved_groups

_SCHEMA = pa.schema([("dish", pa.string()), ("sold", pa.int64()), ("sales", pa.decimal128(18, 2))])
_OUTPUTS = (Output("dish", "key"), Output("sold", "count_rows"), Output("Sales", "sum"))
_LIMITS = {"sales": SumLimits(10**18)}
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
    change = moved_groups(_table(stacked, wide), _OUTPUTS, _LIMITS)
    moved = combine_groups(_SCHEMA, _OUTPUTS, _LIMITS, change, _table(list(stored), _SCHEMA))
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
    except Inapplicable:
        # Only a value that is not NULL and went away can leave doubt behind.
        assert any(value is not None for _, value in leaving)
        return

    assert found == _grouped(kept + coming)


def test_a_sum_that_may_have_lost_its_last_value_is_doubtful() -> None:
    stored = {("a", 2, Decimal("2.50"))}

    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        _combined(stored, [("a", Decimal("2.50"))], [])


def test_a_group_that_was_never_there_cannot_shrink() -> None:
    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        _combined(set(), [("a", Decimal("2.50"))], [])


def test_a_group_without_rows_leaves() -> None:
    stored = {("a", 1, Decimal("2.50")), ("b", 1, None)}

    assert _combined(stored, [("a", Decimal("2.50"))], []) == {("b", 1, None)}


class _Spark:
    """One group of a column of totals, as Spark without ANSI mode computes it."""

    def __init__(
        self, argument: pa.DataType, *kinds: pa.DataType, default: int | None = None
    ) -> None:
        self.kind = kinds[-1]
        self._kinds = kinds
        self._default = default
        limits = sum_limits(argument, [SumStep(kind) for kind in kinds])
        assert limits is not None
        self.limits = {"total": limits}
        self.schema = pa.schema([("n", pa.int64()), ("total", self.kind)])
        self.outputs = (
            Output("n", "count_rows"),
            Output("total", "sum", is_never_null=default is not None),
        )

    def group(self, values: list[int | None]) -> tuple[int, Any] | None:
        known = [value for value in values if value is not None]
        total: int | None = sum(known) if known else None
        for kind in self._kinds:
            if total is None:
                break
            if pa.types.is_integer(kind):
                half = 2 ** (kind.bit_width - 1)
                total = (total + half) % (2 * half) - half
            elif abs(total) >= 10 ** (kind.precision - kind.scale):
                total = None
        total = self._default if total is None else total
        shown = Decimal(total) if total is not None and pa.types.is_decimal(self.kind) else total
        return (len(values), shown) if values else None

    def moved(
        self, stored: list[int | None], leaving: list[int | None], coming: list[int | None]
    ) -> tuple[int, Any] | None:
        """Return the group after a change; what `combine_groups` says of it."""
        before = self.group(stored)
        sides = [(self.group(coming), 1), (self.group(leaving), -1)]
        wide = self.schema.append(pa.field(SIGN, pa.int32()))
        stacked = _table([(*side, sign) for side, sign in sides if side is not None], wide)
        change = moved_groups(stacked, self.outputs, self.limits)
        table = _table([] if before is None else [before], self.schema)
        after = combine_groups(self.schema, self.outputs, self.limits, change, table).to_pylist()
        come = [(row["n"], row["total"]) for row in after if row[NEW_COUNT]]
        gone = [(row["n"], row["total"]) for row in after if row[OLD_COUNT]]
        assert gone in ([], [before])
        return come[0] if come else None if gone else before


_BIG = st.lists(
    st.none() | st.sampled_from([0, 1, -1, 7, 2**31 - 1, 2**62, -(2**62), 2**63 - 1]), max_size=4
)


@pytest.mark.parametrize(
    "kinds",
    [
        (pa.int64(),),
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.decimal128(38, 0)),
        (pa.int64(), pa.int32(), pa.decimal128(20, 0)),
        (pa.int64(), pa.decimal128(10, 0)),
        (pa.int64(), pa.decimal128(10, 0), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
    ],
    ids=lambda kinds: " as ".join(map(str, kinds)),
)
@pytest.mark.parametrize("default", [None, 0])
@given(kept=_BIG, leaving=_BIG, coming=_BIG)
def test_totals_that_wrapped_or_became_null_move_as_spark_adds_them_up(
    kinds: tuple[pa.DataType, ...],
    default: int | None,
    kept: list[int | None],
    leaving: list[int | None],
    coming: list[int | None],
) -> None:
    spark = _Spark(pa.int64(), *kinds, default=default)
    if not leaving and not coming:
        return
    try:
        found = spark.moved([*kept, *leaving], leaving, coming)
    except Inapplicable:
        return

    assert found == spark.group([*kept, *coming])


_WIDE = pa.decimal128(38, 0)


def test_a_null_after_an_overflow_is_not_nothing() -> None:
    spark = _Spark(_WIDE, _WIDE)
    large = 9 * 10**37
    assert spark.group([large, large]) == (2, None)

    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        spark.moved([large, large], [], [1])
    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        spark.moved([1], [], [large, large])
    assert spark.moved([None], [], [1]) == (2, Decimal(1))


def test_a_zero_that_stands_for_an_overflow_is_not_zero() -> None:
    spark = _Spark(_WIDE, _WIDE, default=0)
    large = 9 * 10**37

    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        spark.moved([large, large], [], [1])
    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        spark.moved([large, large, 1], [large, large], [large, large - 5])


def test_an_overflow_on_the_way_is_not_ruled_out_by_a_total_that_fits() -> None:
    spark = _Spark(_WIDE, _WIDE)
    large = 9 * 10**37

    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        spark.moved([large, -large], [], [large])
    assert spark.moved([5, -7], [], [9]) == (3, Decimal(7))


def test_a_count_that_became_null_is_not_zero() -> None:
    schema = pa.schema([("n", pa.decimal128(3, 0))])
    change = _table([(None, 1)], schema.append(pa.field(SIGN, pa.int32())))

    with pytest.raises(Inapplicable, match="NOT_ADDITIVE"):
        moved_groups(change, (Output("n", "count_rows"),), {})


@given(kept=_ROWS, leaving=_ROWS, coming=_ROWS)
def test_moving_the_total_of_all_rows_is_counting_again(
    kept: list[tuple[Any, Any]], leaving: list[tuple[Any, Any]], coming: list[tuple[Any, Any]]
) -> None:
    schema, outputs = pa.schema(list(_SCHEMA)[1:]), _OUTPUTS[1:]
    wide = schema.append(pa.field(SIGN, pa.int32()))

    def total(rows: list[tuple[Any, Any]]) -> tuple[int, Decimal | None]:
        known = [value for _, value in rows if value is not None]
        return len(rows), sum(known, Decimal(0)) if known else None

    stored = total(kept + leaving)
    stacked = [(*total(coming), 1), (*total(leaving), -1)]
    try:
        change = moved_groups(_table(stacked, wide), outputs, _LIMITS)
        moved = combine_groups(schema, outputs, _LIMITS, change, _table([stored], schema))
    except Inapplicable:
        # One row is left even of no rows, and what it holds then is not added up.
        assert not kept + coming or any(value is not None for _, value in leaving)
        return
    rows = moved.to_pylist()
    coming_rows = [(row["sold"], row["sales"]) for row in rows if row[NEW_COUNT]]

    assert (coming_rows or [stored]) == [total(kept + coming)]
    assert len(rows) in (0, 2)
