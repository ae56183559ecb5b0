"""The affected region in time: intervals around changes, merged per key."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.time_zone import UTC_ZONE, TimeZone
from livemart.arrow.times import DAY, EVER, micros_of
from livemart.delta.partitions import BLANKS
from livemart.limits import MOST_INTERVALS_OF_A_KEY
from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.relation import Restriction
from livemart.refresh.region import (
    _distinct,
    _is_narrowed,
    _islands,
    _require_keys_of_one_type,
    _with_blanks,
    _with_bounds,
)

START = datetime(1970, 1, 1, tzinfo=UTC)


def islands(*points: tuple[str, int | None]) -> list[tuple[str, int, int, bool]]:
    """Return the intervals from 1 before to 2 after each point, in microseconds."""
    times = [None if at is None else START + timedelta(microseconds=at) for _, at in points]
    rows = pa.table(
        {"w0": [key for key, _ in points], "w1": pa.array(times, pa.timestamp("us", tz="UTC"))}
    )
    return [tuple(row.values()) for row in _islands(rows, 1, 2, 1).to_pylist()]


def test_intervals_that_meet_are_one() -> None:
    assert islands(("a", 10), ("a", 13), ("a", 30), ("b", 10)) == [
        ("a", 9, 15, False),
        ("a", 29, 32, False),
        ("b", 9, 12, False),
    ]


def test_a_time_of_null_affects_all_rows_of_its_key() -> None:
    assert islands(("a", 10), ("a", None)) == [("a", -EVER, EVER, True)]


def test_a_key_with_many_intervals_is_covered_by_one() -> None:
    many = [("a", 100 * number) for number in range(MOST_INTERVALS_OF_A_KEY + 1)]

    assert islands(*many) == [("a", -1, 100 * MOST_INTERVALS_OF_A_KEY + 2, False)]


def test_times_of_any_year_and_keys_of_any_type_have_intervals() -> None:
    far = pa.array([-(10**18), 10**18, 10**18 + 2], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    keys = pa.array([10**18] * 3, pa.int64()).cast(pa.timestamp("us"))

    found = _islands(pa.table({"w0": keys, "w1": [[None]] * 3, "w2": far}), 2, 2, 1)

    assert found.column("w0").cast(pa.int64()).to_pylist() == [10**18] * 2
    assert found.drop_columns(["w0"]).to_pylist() == [
        {"w1": [None], "low": -(10**18) - 1, "high": 2 - 10**18, "has_null": False},
        {"w1": [None], "low": 10**18 - 1, "high": 10**18 + 4, "has_null": False},
    ]


def test_keys_without_a_common_type_cannot_be_compared() -> None:
    with pytest.raises(Inapplicable) as caught:
        _distinct([pa.table({"w0": ["a"]}), pa.table({"w0": [[1]]})], UTC_ZONE)

    assert caught.value.reason.code == "KEY_NOT_IN_OUTPUT"


def _joined(*columns: pa.Array, zone: TimeZone = UTC_ZONE) -> pa.Table:
    return _distinct([pa.table({"w0": column}) for column in columns], zone)


def test_keys_of_several_types_take_the_one_that_spark_compares_them_in() -> None:
    price, whole = pa.decimal128(12, 2), pa.int64()

    assert _joined(pa.array([1], whole), pa.array([1], pa.int32())).schema.types == [whole]
    both = _joined(pa.array([1], whole), pa.array([Decimal("1.50")], price))
    assert both.schema.types == [pa.decimal128(22, 2)]
    # As Spark compares a bigint with a double: rounded to one.
    doubles = _joined(pa.array([2**53 + 1], whole), pa.array([2.0**53]))
    assert doubles.to_pydict() == {"w0": [2.0**53]}


@pytest.mark.parametrize(
    "columns",
    [
        (pa.array([1]), pa.array([Decimal(1)], pa.decimal128(38, 30))),
        (pa.array([1]), pa.array([1.0], pa.float32()), pa.array([1.0])),
        (pa.array([Decimal("0.1")], pa.decimal128(38, 18)), pa.array([0.1])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array(["1"]), pa.array([b"1"])),
    ],
    ids=["rounded decimals", "three ways", "decimal and double", "number and text", "binary"],
)
def test_keys_that_arrow_would_round_or_read_otherwise_are_not_compared(
    columns: tuple[pa.Array, ...],
) -> None:
    with pytest.raises(Inapplicable, match="KEY_NOT_IN_OUTPUT"):
        _joined(*columns)


def test_keys_that_the_table_holds_as_null_are_affected_together() -> None:
    keys = pa.table({"w0": pa.array(["a", "", None]), "w1": [1, 2, 3]})

    found = {tuple(row.values()) for row in _with_blanks(keys, "w0").to_pylist()}

    assert found == {("a", 1), *((key, n) for key in (None, *BLANKS) for n in (2, 3))}


def test_a_date_is_compared_with_an_instant_in_utc_alone() -> None:
    columns = (pa.array([date(2026, 3, 1)]), pa.array([START], pa.timestamp("us", tz="UTC")))

    assert _joined(*columns).schema.types == [pa.timestamp("us", tz="UTC")]
    with pytest.raises(Inapplicable, match="KEY_NOT_IN_OUTPUT"):
        _joined(*columns, zone=TimeZone(is_utc=False))


def test_a_date_that_is_no_timestamp_is_no_key_beside_one() -> None:
    far = pa.array([106_751_992], pa.int32()).cast(pa.date32())

    with pytest.raises(Inapplicable, match="KEY_NOT_IN_OUTPUT"):
        _joined(far, pa.array([START], pa.timestamp("us")))


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.date32(), date(1970, 1, 2), date(1970, 1, 3)),
        (pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1970, 1, 3)),
    ],
)
def test_the_bounds_of_a_region_have_the_type_of_its_time(
    kind: pa.DataType, low: object, high: object
) -> None:
    affected = pa.table({"low": [1, -EVER], "high": [2 * DAY, EVER]})

    bounds = _with_bounds(affected, kind)

    assert [bounds.column(name)[0].as_py() for name in ("low", "high")] == [low, high]
    # The last ones leave out no time that Spark holds, of whatever year.
    assert [micros_of(bounds.column(name))[0][1] for name in ("low", "high")] == [-EVER, EVER]


@pytest.mark.parametrize(
    ("of_rows", "margin", "is_kept"),
    [
        (pa.string(), 0, True),
        (pa.int64(), 0, False),
        # A time that was cut to the hour is of the type that it has.
        (pa.timestamp("us", tz="UTC"), DAY, True),
    ],
)
def test_what_ties_by_a_key_of_another_type_is_recomputed_as_a_whole(
    of_rows: pa.DataType, margin: int, is_kept: bool
) -> None:
    plan = plan_query(
        "select k from s.t qualify row_number() over (partition by k order by at) = 1",
        Inputs({"s.t": ("k", "at")}),
    )
    assert plan.region is not None
    region = replace(plan.region, restrictions={0: (Restriction(((0, "k", margin),)),)})
    stored, rows = (
        SimpleNamespace(fields={"k": pa.field("k", kind)}) for kind in (pa.string(), of_rows)
    )
    run: Any = SimpleNamespace(stored=stored, inputs={0: SimpleNamespace(new=rows)})

    with nullcontext() if is_kept else pytest.raises(Inapplicable, match="NONDETERMINISTIC_ORDER"):
        _require_keys_of_one_type(run, region)


@pytest.mark.parametrize(
    ("restrictions", "expected"),
    [
        ({0: [Restriction(((0, "k", 0), (1, "n", 0)))]}, True),
        # Rows of other numbers come with the keys.
        ({0: [Restriction(((0, "k", 0),))]}, False),
        ({0: [Restriction(((0, "k", 0), (1, "n", 0))), Restriction(())]}, False),
        ({0: []}, False),
        ({}, False),
    ],
)
def test_inputs_are_narrowed_if_all_keys_confine_each_of_them(
    restrictions: dict[int, list[Restriction]], expected: bool
) -> None:
    # The second input is a clock.
    inputs = [SimpleNamespace(index=0), SimpleNamespace(index=1)]
    run: Any = SimpleNamespace(inputs=inputs, plan=SimpleNamespace(parameters={1: True}))
    region: Any = SimpleNamespace(keys=("k", "n"))

    assert _is_narrowed(run, region, restrictions) is expected
