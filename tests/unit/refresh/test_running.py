"""Running totals refreshed by what changed are those of all rows: frames by their definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.bags import WEIGHT
from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits
from livemart.arrow.time_zone import UTC_ZONE
from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.template import Template
from livemart.plan.strategies.running import Running, Total
from livemart.refresh.pinned_table import ByName
from livemart.refresh.running import Starts, refresh_running, running_rows
from livemart.refresh.views import SparkView, Statement
from livemart.spark.arrow_views import ArrowViews

_TIME = pa.timestamp("us", tz="UTC")
_ORDERS = pa.schema(
    [("shop", pa.string()), ("Sold_At", _TIME), ("amount", pa.int64()), ("city", pa.string())]
)
_TOTALS = pa.schema(
    [
        ("shop", pa.string()),
        ("sold_at", _TIME),
        ("place", pa.string()),
        ("row_count", pa.int64()),
        ("amount", pa.int64()),
    ]
)
_START = datetime(2026, 3, 4, tzinfo=UTC)
_FRAMES = (timedelta(hours=1), timedelta(hours=12))
Row = tuple[Any, ...]
_ADDED = (
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


def _plan(partition: str) -> Plan:
    rows, amount = (
        f"{partition}order by sold_at range between interval {hours} hours" for hours in (1, 12)
    )
    found = plan_query(
        f"select shop, sold_at, upper(city) as place,"
        f" count(*) over ({rows} preceding and current row) as row_count,"
        f" sum(amount) over ({amount} preceding and current row) as amount from s.orders",
        Inputs(columns={"s.orders": tuple(_ORDERS.names)}),
    )
    assert isinstance(found.strategy, Running)
    return found


_PLANS = {True: _plan("partition by shop "), False: _plan("")}


def _model(rows: Sequence[Row], *, is_keyed: bool) -> list[Row]:
    """Return the model's rows by the definition of its frames; NULL times see each other alone."""
    found = []
    for shop, at, _, city in rows:
        partition = [other for other in rows if other[0] == shop or not is_keyed]
        frames = [
            [other for other in partition if other[1] is None]
            if at is None
            else [
                other
                for other in partition
                if other[1] is not None and at - before <= other[1] <= at
            ]
            for before in _FRAMES
        ]
        known = [other[2] for other in frames[1] if other[2] is not None]
        amount = sum(known) if known else None
        found.append((shop, at, city and city.upper(), len(frames[0]), amount))
    return found


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    columns = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)
    ]
    return pa.table(columns, schema=schema)


def _refreshed(
    old: Sequence[Row],
    new: Sequence[Row],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_keyed: bool,
) -> list[Row]:
    """Return the model's rows after a refresh; Spark's part, `upper(city)`, is Arrow's."""
    handed: dict[str, pa.Table] = {}
    views = ArrowViews(_Session(handed))  # type: ignore[arg-type]
    monkeypatch.setattr(
        "livemart.spark.arrow_views.to_view_of",
        lambda session, name, rows: handed.__setitem__(name, rows),
    )
    monkeypatch.setattr("livemart.spark.arrow_views.session_for", lambda session, *_, **__: session)
    net = Counter(new)
    net.subtract(Counter(old))
    changed = [(*row, weight) for row, weight in net.items() if weight]
    images = _table(changed, _ORDERS.append(pa.field(WEIGHT, pa.int64())))
    before = _model(old, is_keyed=is_keyed)

    def table(rows: pa.Table) -> SimpleNamespace:
        return SimpleNamespace(
            schema=rows.schema,
            blank_columns=frozenset(),
            fields=ByName((field.name, field) for field in rows.schema),
            names=ByName((name, name) for name in rows.schema.names),
            read=lambda passing, columns=None: rows.filter(passing.matches(rows)),
        )

    def query(statement: Statement) -> pa.Table:
        views.session([], (), [view.name for view in statement.holes])
        rows = handed["inputs"]
        place = pc.utf8_upper(rows.column("city"))
        return pa.table({"place": place, "__livemart_place": rows.column("__livemart_place")})

    def of_rows(label: str, rows: pa.Table) -> Statement:
        return Template((SparkView(views.add(label, rows), label),))

    run = SimpleNamespace(
        plan=_PLANS[is_keyed],
        inputs=[SimpleNamespace(images=images, new=table(_table(new, _ORDERS)), columns=())],
        stored=table(_table(before, _TOTALS)),
        views=SimpleNamespace(query=query, of_rows=of_rows, is_large=False),
        zone=UTC_ZONE,
    )
    change = refresh_running(run, _PLANS[is_keyed].strategy)  # type: ignore[arg-type]
    found = Counter(before)
    for row in [] if change is None else change.to_pylist():
        *values, had, has = row.values()
        assert found[tuple(values)] == had
        found[tuple(values)] = has
    return list(found.elements())


class _Session:
    """A session that forgets a view on request."""

    def __init__(self, handed: Mapping[str, pa.Table]) -> None:
        self.catalog = SimpleNamespace(dropTempView=lambda name: handed.pop(name))  # type: ignore[attr-defined]


_ORDER = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.integers(0, 120).map(lambda halves: _START + timedelta(minutes=30 * halves)),
    st.sampled_from([0, 1, 1, 5, -1, None]),
    st.sampled_from(["Lisbon", "Porto", None]),
)


@pytest.mark.parametrize("is_keyed", [True, False])
@given(
    kept=st.lists(_ORDER, max_size=20),
    gone=st.lists(_ORDER, max_size=3),
    come=st.lists(_ORDER, max_size=4),
)
def test_refreshed_totals_are_those_of_all_rows(
    is_keyed: bool, kept: list[Row], gone: list[Row], come: list[Row]
) -> None:
    old, new = [*kept, *gone], [*kept, *come]

    with pytest.MonkeyPatch.context() as patch:
        found = _refreshed(old, new, patch, is_keyed=is_keyed)

    assert Counter(found) == Counter(_model(new, is_keyed=is_keyed))


def test_late_and_fresh_rows_of_one_batch_keep_their_own_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = [("b", _START, 5, "Porto"), ("c", _START, 5, "Braga")]
    fresh = [("a", _START + timedelta(hours=90), 1, "Lisbon")]

    found = _refreshed([], [*late, *fresh], monkeypatch, is_keyed=True)

    assert Counter(found) == Counter(_model([*late, *fresh], is_keyed=True))


def test_frames_that_do_not_fit_microseconds_are_left_to_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far = pa.array([2**63 - 1], pa.int64()).cast(_TIME)[0]

    with pytest.raises(Inapplicable, match="NOT_CARRIED_ON: a time is more than 146,000 years"):
        _refreshed([], [("a", far, 1, "Lisbon")], monkeypatch, is_keyed=True)


def test_a_time_that_is_null_is_left_to_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Inapplicable, match="NOT_CARRIED_ON"):
        _refreshed([], [("a", None, 1, "Lisbon")], monkeypatch, is_keyed=True)


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
    for total in _ADDED:
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
    carried = [(None,) * len(_ADDED) if row is None else _frames(old, row) for row in before]
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
        _ADDED,
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
        _ADDED[1:2],
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
