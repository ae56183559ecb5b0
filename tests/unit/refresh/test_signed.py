"""Which sums are exact, and the changed rows of an anchor as of one side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.arrow.bags import WEIGHT
from livemart.arrow.sum_limits import SumLimits
from livemart.delta.row_filter import EVERY_ROW, NO_ROW, IsIn, RowFilter
from livemart.plan.relations.key_query import key_query
from livemart.plan.relations.relation import column
from livemart.plan.strategies.signed import Lookup, Output, Signed, Summed
from livemart.refresh.inputs import Side
from livemart.refresh.signed import (
    _by_product_rule,
    _changed_part,
    _changed_rows,
    _joined,
    _limits_of,
)


def _limits(stored: pa.DataType, *analysed: str) -> SumLimits | None:
    """Return what a total is worth; Spark says that its argument and steps have these types."""
    kinds = [_KINDS[kind] for kind in analysed]
    answers = [kinds[:1], kinds[1:]]
    run = SimpleNamespace(
        stored=SimpleNamespace(fields={"total": pa.field("total", stored)}),
        views=SimpleNamespace(types=lambda *_: answers.pop(0)),
    )
    steps = tuple((f"step {place}", False) for place in range(len(analysed) - 1))
    output = Output("total", "sum", (Summed((key_query([column("x")], "t"),), steps),))
    return _limits_of(cast(Any, run), output, {})


_KINDS = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "decimal(22,2)": pa.decimal128(22, 2),
    "decimal(22,0)": pa.decimal128(22, 0),
}


def test_a_total_is_worth_what_every_step_to_it_holds() -> None:
    assert _limits(pa.int64(), "int", "bigint") == SumLimits(2**63)
    assert _limits(pa.int64(), "int", "bigint", "int", "bigint") == SumLimits(2**31)
    money = pa.decimal128(22, 2)
    assert _limits(money, "decimal(12,2)", "decimal(22,2)") == SumLimits(10**22, 10**10)


def test_the_same_steps_over_the_same_type_are_asked_about_once() -> None:
    questions: list[str] = []

    def types(selected: str, query: str) -> list[pa.DataType]:
        questions.append(selected)
        return [pa.int32()] if selected == "w0" else [pa.int64()]

    fields = {name: pa.field(name, pa.int64()) for name in ("a", "b")}
    run = SimpleNamespace(stored=SimpleNamespace(fields=fields), views=SimpleNamespace(types=types))
    asked: dict[tuple[str, pa.DataType], list[pa.DataType]] = {}
    for name in fields:
        summed = Summed((key_query([column(name)], "t"),), (("sum(w0)", False),))
        output = Output(name, "sum", (summed,))
        assert _limits_of(cast(Any, run), output, asked) == SumLimits(2**63)
    assert questions == ["w0", "sum(w0)", "w0"]


@pytest.mark.parametrize(
    "analysed",
    [
        ("double", "double", "decimal(22,2)"),
        ("decimal(12,2)", "decimal(22,2)", "double", "decimal(22,2)"),
        ("decimal(12,2)", "decimal(22,2)", "decimal(22,0)", "decimal(22,2)"),
        # Not the SUM that is known.
        ("int", "double"),
    ],
)
def test_a_total_that_is_rounded_on_the_way_is_not_added_to(analysed: tuple[str, ...]) -> None:
    assert _limits(pa.decimal128(22, 2), *analysed) is None


@pytest.mark.parametrize(("side", "expected"), [("new", ["b", "b"]), ("old", ["a"])])
def test_a_row_comes_as_often_as_it_came_or_went(side: Side, expected: list[str]) -> None:
    images = pa.table({"k": ["a", "b"], "n": [1, 2], WEIGHT: pa.array([-1, 2], pa.int64())})
    anchor = cast(Any, SimpleNamespace(images=images))

    rows = _changed_rows(anchor, side, ["k"])

    assert rows.to_pydict() == {"k": expected}


_KEYS = (("k", ((0, "k"),)),)
_JOINED = Signed((0,), (Lookup(1, _KEYS, is_linear=True), Lookup(2, _KEYS)), None)


def _joining(*changed: int) -> Any:
    """Return a run over an anchor, two lookups and the clock, of which some have changed."""
    inputs = [SimpleNamespace(index=it, has_changed=it in changed) for it in range(4)]
    plan = SimpleNamespace(slices=(), parameters={3: True})
    return SimpleNamespace(inputs=inputs, plan=plan, views=SimpleNamespace(is_large=False))


@pytest.mark.parametrize(
    ("changed", "is_told"),
    [
        ((0, 1), True),
        ((1,), True),
        ((0,), False),
        # A row that a left join finds takes the place of one that found nothing.
        ((0, 2), False),
        ((1, 2), False),
        ((1, 3), False),
    ],
)
def test_changed_rows_tell_all_where_one_linear_lookup_changed(
    changed: tuple[int, ...], is_told: bool
) -> None:
    part = _changed_part(_joining(*changed), _JOINED, {0: NO_ROW})

    assert part == (_JOINED.lookups[0] if is_told else None)


def test_changed_rows_do_not_tell_what_the_clock_moved_or_what_a_total_became() -> None:
    totals = Signed((0,), _JOINED.lookups, (Output("n", "count_rows"),))

    assert _changed_part(_joining(1), _JOINED, {0: EVERY_ROW}) is None
    assert _changed_part(_joining(1), totals, {0: NO_ROW}) is None


def test_a_lookup_is_read_by_the_keys_of_all_places_and_whole_if_its_key_is_nested() -> None:
    def rows_of_keys(*pieces: pa.Array) -> RowFilter:
        field = pa.field("k", pieces[0].type)
        there = SimpleNamespace(new=SimpleNamespace(fields={"k": field}, names={"k": "k"}))
        lookup = Lookup(2, (("k", ((0, "k"), (1, "k"))),))
        present = {place: pa.table({"k": piece}) for place, piece in enumerate(pieces)}
        return _joined(cast(Any, SimpleNamespace(inputs=[there] * 3)), lookup, present)

    condition = IsIn("k", pa.array([1, 2, 3]), has_null=True)
    assert rows_of_keys(pa.array([2, None]), pa.array([3, 1])) == RowFilter(((condition,),))
    for nested in (pa.array([[1.5], None]), pa.array([{"x": 1}, None])):
        assert rows_of_keys(nested, nested) is EVERY_ROW


def test_a_product_changes_by_each_factor_beside_the_other() -> None:
    def change(*rows: tuple[str, int, int]) -> pa.Table:
        keys, numbers, weights = zip(*rows, strict=True)
        return pa.table({"k": keys, "n": numbers, WEIGHT: pa.array(weights, pa.int64())})

    rows_of: dict[str, pa.Table] = {}

    def view(name: str, rows: pa.Table, *_: object) -> str:
        rows_of[name] = rows
        return name

    images = [change(("a", 1, 1), ("b", 2, -1)), change(("a", 7, 1), ("a", 6, -1))]
    schema = images[0].drop_columns([WEIGHT]).schema
    fields = {field.name: field for field in schema}
    names = {name: name for name in schema.names}
    table = SimpleNamespace(schema=schema, fields=fields, names=names)
    inputs = [
        SimpleNamespace(
            index=it, images=rows, columns=schema.names, new=table, at=lambda side: side
        )
        for it, rows in enumerate(images)
    ]
    views = SimpleNamespace(padded=view, matching=lambda label, side, rows: f"{label} {side}")
    run: Any = SimpleNamespace(
        inputs=inputs, views=views, query=lambda side, names: f"{names[0]} x {names[1]}"
    )
    signed = Signed((0,), _JOINED.lookups[:1], None)
    kept = pa.table({"k": ["a"], "n": [3]})

    terms = _by_product_rule(run, signed, signed.lookups[0], {0: kept})

    assert [(str(query), sign) for query, sign in terms] == [
        ("new_0 x with_new_1 new", 1),
        ("old_0 x with_old_1 new", -1),
        ("before_0 x changed_new_1", 1),
        ("before_0 x changed_old_1", -1),
    ]
    assert {name: rows.to_pydict() for name, rows in rows_of.items()} == {
        "new_0": {"k": ["a"], "n": [1]},
        "old_0": {"k": ["b"], "n": [2]},
        "before_0": {"k": ["a", "b"], "n": [3, 2]},
        "changed_new_1": {"k": ["a"], "n": [7]},
        "changed_old_1": {"k": ["a"], "n": [6]},
    }
