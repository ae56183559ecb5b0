"""Carried totals are those of the frames: against the definition of RANGE, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits
from livemart.plan.reasons import Inapplicable
from livemart.plan.strategies.running import Total
from livemart.refresh.running_totals import Starts, running_rows

_TOTALS = (
    Total("rows_3", None, 3),
    Total("amount_3", "amount", 3),
    Total("amount_10", "amount", 10),
    Total("quantity_10", "quantity", 10),
)
_MONEY = pa.decimal128(12, 2)
_TYPES = (pa.int64(), pa.decimal128(22, 2), pa.decimal128(38, 4), pa.decimal128(20, 0))
_LIMITS = tuple(
    limits
    for argument, kind in zip((pa.int64(), _MONEY, _MONEY, pa.int32()), _TYPES, strict=True)
    if (limits := sum_limits(argument, [SumStep(kind)])) is not None
)


@dataclass(frozen=True)
class _Row:
    key: str | None
    at: int
    amount: Decimal | None
    quantity: int | None


_AMOUNTS = st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-1.25")])
_ROWS = st.builds(
    _Row, st.sampled_from(["a", "b", None]), st.integers(0, 40), _AMOUNTS, st.integers(0, 3)
)


def _frames(rows: Sequence[_Row], row: _Row) -> tuple[object, ...]:
    """Return the totals of a row, by the definition of its frames; NULL where nothing adds up."""
    found: list[object] = []
    for total in _TOTALS:
        frame = [
            other
            for other in rows
            if other.key == row.key and row.at - total.before <= other.at <= row.at
        ]
        if total.argument is None:
            found.append(len(frame))
            continue
        values = [getattr(other, total.argument) for other in frame]
        known = [value for value in values if value is not None]
        found.append(sum(known) if known else None)
    return tuple(found)


def _starts(old: Sequence[_Row], changed: Sequence[_Row]) -> Starts:
    """Start each changed key after the last row before its first change, if there is one."""
    keys = sorted({row.key for row in changed}, key=str)
    low = [min(row.at for row in changed if row.key == key) for key in keys]
    high = [max(row.at for row in changed if row.key == key) + 10 for key in keys]
    before = [
        max((row for row in old if row.key == key and row.at < at), key=lambda row: row.at)
        if any(row.key == key and row.at < at for row in old)
        else None
        for key, at in zip(keys, low, strict=True)
    ]
    carried = [(None,) * len(_TOTALS) if row is None else _frames(old, row) for row in before]
    return Starts(
        (pa.array(keys, pa.string()),),
        np.array(low),
        np.array(high),
        np.array([0 if row is None else row.at for row in before]),
        np.array([row is not None for row in before]),
        tuple(
            pa.array([each[index] for each in carried]).cast(kind)
            for index, kind in enumerate(_TYPES)
        ),
    )


def _carried(
    rows: Sequence[_Row], starts: Starts
) -> tuple[list[tuple[_Row, tuple[object, ...]]], npt.NDArray[np.bool_]]:
    """Return the rows that may differ with their totals, and which keys are in doubt."""
    amounts = pa.array([row.amount for row in rows], _MONEY)
    quantities = pa.array([row.quantity for row in rows], pa.int32())
    shown, totals, is_doubtful = running_rows(
        _TOTALS,
        _TYPES,
        _LIMITS,
        starts,
        (pa.array([row.key for row in rows], pa.string()),),
        np.array([row.at for row in rows], dtype=np.int64),
        (None, amounts, amounts, quantities),
    )
    kept = [row for row, is_shown in zip(rows, shown, strict=True) if is_shown]
    columns = [total.to_pylist() for total in totals]
    return list(zip(kept, zip(*columns, strict=True), strict=True)), is_doubtful


@given(
    kept=st.lists(_ROWS, max_size=25),
    gone=st.lists(_ROWS, max_size=3),
    come=st.lists(_ROWS, max_size=3),
)
def test_carried_totals_are_those_of_the_frames(
    kept: list[_Row], gone: list[_Row], come: list[_Row]
) -> None:
    changed = [*gone, *come]
    if not changed:
        return
    starts = _starts([*kept, *gone], changed)
    new = [*kept, *come]
    expected = {
        key: (low, high)
        for key, low, high in zip(starts.keys[0].to_pylist(), starts.low, starts.high, strict=True)
    }
    found, is_doubtful = _carried(new, starts)
    if is_doubtful.any():
        # Only where it may be NULL: a value of the row's own is a total.
        assert any(row.amount is None for row in new)
        assert (starts.has_since | ~is_doubtful).all()
        found, is_doubtful = _carried(new, starts.without_past(is_doubtful))
    assert not is_doubtful.any()

    for row, totals in found:
        assert totals == _frames(new, row), row
    assert [row for row, _ in found] == [
        row
        for row in new
        if row.key in expected and expected[row.key][0] <= row.at <= expected[row.key][1]
    ]


def test_a_total_of_zero_is_in_doubt_only_where_its_row_has_no_value() -> None:
    past = [_Row("a", 1, Decimal("1.25"), 1)]
    new = [*past, _Row("a", 5, Decimal("0.00"), 0), _Row("a", 20, None, 0)]
    starts = _starts(past, new[1:2])

    found, is_doubtful = _carried(new[:2], starts)
    assert (found[0][1], is_doubtful.tolist()) == ((1, 0, Decimal("1.25"), 1), [False])
    _, is_doubtful = _carried(new, replace(starts, high=np.array([30])))
    assert is_doubtful.tolist() == [True]
    cold = replace(starts, high=np.array([30]), has_since=np.array([False]))
    found, is_doubtful = _carried(new, cold)
    assert (found[1][1], is_doubtful.tolist()) == ((1, None, None, 0), [False])


def test_a_total_that_does_not_fit_its_type_is_refused() -> None:
    kind = pa.decimal128(4, 2)
    starts = replace(_starts([], [_Row("a", 1, None, None)]), carried=(pa.nulls(1, kind),))
    amounts = pa.array([Decimal("123.00")], _MONEY)

    with pytest.raises(Inapplicable, match="NOT_CARRIED_ON"):
        _run(kind, SumLimits(10**4), starts, amounts)


def _run(kind: pa.DataType, limits: SumLimits, starts: Starts, arguments: pa.Array) -> list[object]:
    """Return the total of one row that comes at 1."""
    _, (totals,), _ = running_rows(
        _TOTALS[1:2],
        (kind,),
        (limits,),
        starts,
        (pa.array(["a"]),),
        np.array([1]),
        (arguments,),
    )
    found: list[object] = totals.to_pylist()
    return found


@pytest.mark.parametrize(
    ("argument", "total", "carried", "coming", "expected"),
    [
        (pa.int64(), pa.int64(), -(2**62), 5, 5 - 2**62),
        # 2^63 - 1 and then 2: Spark's total is below zero, and stays what was cast.
        (pa.int64(), pa.decimal128(38, 0), 2**63 - 1, 2, None),
        (pa.decimal128(38, 0), pa.decimal128(38, 0), 9 * 10**37, -(9 * 10**37), None),
        (pa.decimal128(38, 0), pa.decimal128(38, 0), 7, 5, 12),
        (pa.int32(), pa.int32(), 2**31 - 1, 1, None),
        (pa.decimal128(5, 0), pa.decimal128(5, 0), 99_999, 1, None),
    ],
)
def test_a_total_is_carried_on_only_where_it_is_sure(
    argument: pa.DataType, total: pa.DataType, carried: int, coming: int, expected: int | None
) -> None:
    def column(value: int, kind: pa.DataType) -> pa.Array:
        return pa.array([Decimal(value) if pa.types.is_decimal(kind) else value], kind)

    limits = sum_limits(argument, [SumStep(total)])
    assert limits is not None
    change = _Row("a", 1, None, None)
    starts = replace(
        _starts([], [change]),
        since=np.array([0]),
        has_since=np.array([True]),
        carried=(column(carried, total),),
    )
    if expected is None:
        with pytest.raises(Inapplicable, match="NOT_CARRIED_ON"):
            _run(total, limits, starts, column(coming, argument))
    else:
        assert _run(total, limits, starts, column(coming, argument)) == [expected]
