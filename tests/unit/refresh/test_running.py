"""Running totals refreshed by what changed are those of all rows: frames by their definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.bags import WEIGHT
from livemart.arrow.time_zone import UTC_ZONE
from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.template import Template
from livemart.plan.strategies.running import Running
from livemart.refresh.pinned_table import ByName
from livemart.refresh.running import refresh_running
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
