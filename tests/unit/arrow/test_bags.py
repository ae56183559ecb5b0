"""Rows that are equal, as Spark groups them, and rows that are identical, bit for bit."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemart.arrow.bags import (
    NEW_COUNT,
    OLD_COUNT,
    WEIGHT,
    difference,
    first_copies,
    is_member,
    matching_rows,
    net_rows,
    row_codes,
    with_both_zeros,
    without,
)
from tests.bag_histories import bag_of, keyless_history, weights_of
from tests.disagreeing_values import KINDS, array


@pytest.mark.parametrize(
    ("kind", "same", "other"),
    [
        (pa.float64(), [0.0, -0.0], math.nan),
        (pa.float32(), [math.nan, -math.nan], None),
        (pa.int64(), [None, None], 0),
        (pa.string(), ["", ""], None),
        (pa.list_(pa.int64()), [[], []], None),
        (pa.list_(pa.float64()), [[0.0, None], [-0.0, None]], [0.0]),
        (pa.struct([("a", pa.int64())]), [{"a": None}, {"a": None}], None),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], []),
        (pa.list_(pa.list_(pa.string())), [[["a"], []], [["a"], []]], [["a"]]),
        (pa.null(), [None, None], None),
    ],
)
def test_equal_values_share_a_code(kind: pa.DataType, same: list[object], other: object) -> None:
    array = pa.array([*same, other], kind)

    first, second, third = row_codes([array], 3)

    assert first == second
    assert (third == first) == pa.types.is_null(kind)


def form(value: Any, kind: pa.DataType, *, identical: bool) -> object:
    """Return what values share if they are identical, or else if Spark's GROUP BY has one group."""

    def part(value: Any, kind: pa.DataType) -> object:
        return form(value, kind, identical=identical)

    if value is None:
        return None
    if pa.types.is_floating(kind):
        if math.isnan(value):
            return "NaN"
        return str(value) if identical else value
    if pa.types.is_map(kind):
        inner = kind.key_type, kind.item_type
        entries = [tuple(map(part, entry, inner)) for entry in value]
        return tuple(entries) if identical else frozenset(entries)
    if pa.types.is_list(kind):
        return tuple(part(item, kind.value_type) for item in value)
    if pa.types.is_struct(kind):
        return tuple((field.name, part(value[field.name], field.type)) for field in kind)
    return value


@pytest.mark.parametrize("identical", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_two_values_of_a_type_share_a_code_if_they_are_one(name: str, identical: bool) -> None:
    kind = KINDS[name].arrow
    values = [*KINDS[name].values, None] * 2
    forms = [form(value, kind, identical=identical) for value in values]

    codes = row_codes([array(name, values)], len(values), identical=identical)

    expected = [[one == other for other in forms] for one in forms]
    assert (codes[:, None] == codes[None, :]).tolist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_every_type_add_up_and_are_found(seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        tuple(chance.choice([*chance.sample(kind.values, 2), None]) for kind in KINDS.values())
        for _ in range(40)
    ]
    rows = [chance.choice(rows) for _ in range(200)]
    weights = [chance.randint(-2, 2) for _ in rows]
    identities, equals = (
        [
            tuple(
                form(part, kind.arrow, identical=identical)
                for part, kind in zip(row, KINDS.values(), strict=True)
            )
            for row in rows
        ]
        for identical in (True, False)
    )
    columns = zip(*rows, strict=True)
    table = pa.table(
        {name: array(name, values) for name, values in zip(KINDS, columns, strict=True)}
    )
    expected = Counter[object]()
    for row, weight in zip(identities, weights, strict=True):
        expected[row] += weight

    netted = net_rows(table, pa.array(weights))
    is_found = is_member(table.columns, table.slice(0, 20).columns)

    assert sorted(netted[WEIGHT].to_pylist()) == sorted(filter(None, expected.values()))
    assert is_found.tolist() == [row in equals[:20] for row in equals]


_MAP = pa.map_(pa.string(), pa.float64())
_KEYED_BY_ZERO = pa.map_(pa.float64(), pa.int64())


@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        (pa.float64(), 0.0, -0.0),
        (pa.float32(), -0.0, 0.0),
        (pa.list_(pa.float64()), [None, 0.0], [None, -0.0]),
        (pa.struct([("a", pa.float32())]), {"a": 0.0}, {"a": -0.0}),
        (_MAP, [("a", 0.0)], [("a", -0.0)]),
        (_KEYED_BY_ZERO, [(0.0, 1)], [(-0.0, 1)]),
        (_MAP, [("a", None), ("b", 2.0)], [("b", 2.0), ("a", None)]),
        (
            pa.map_(pa.string(), _MAP),
            [("x", [("a", 1.0), ("b", 2.0)])],
            [("x", [("b", 2.0), ("a", 1.0)])],
        ),
        (pa.list_(pa.struct([("m", _MAP)])), [{"m": [("a", 0.0)]}], [{"m": [("a", -0.0)]}]),
    ],
)
def test_equal_values_may_not_be_identical(kind: pa.DataType, value: object, other: object) -> None:
    array = pa.array([value, other, value, None, None], kind)

    assert len(set(row_codes([array], 5).tolist())) == 2
    first, second, third, *missing = row_codes([array], 5, identical=True).tolist()
    assert first == third != second
    assert missing[0] == missing[1] not in (first, second)


def test_nan_is_one_value() -> None:
    array = pa.array([[math.nan], [-math.nan]])

    assert len(set(row_codes([array], 2, identical=True))) == 1
    assert difference(pa.table({"a": array[:1]}), pa.table({"a": array[1:]})).num_rows == 0


def test_only_identical_rows_cancel_out_or_go() -> None:
    rows = pa.table({"d": [-0.0, 0.0], "n": [1, 1]})

    assert net_rows(rows, pa.array([-1, 1])).num_rows == 2
    assert str(without(rows, rows.slice(1))["d"].to_pylist()) == "[-0.0]"
    assert first_copies(rows, rows.slice(1)).tolist() == [False, True]


def test_slices_are_compared_by_their_own_rows() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    array = pa.array([[("x", [9])], [("a", [1, 2])], None, [("a", [1, 2])]], kind)

    codes = row_codes([array.slice(1)], 3)

    assert codes[0] == codes[2] != codes[1]


def test_rows_without_columns_are_all_equal() -> None:
    assert row_codes([], 3).tolist() == [0, 0, 0]


@given(st.lists(st.tuples(st.integers(-2, 2), st.none() | st.integers(0, 1), st.integers(-3, 3))))
def test_weights_of_equal_rows_add_up(rows: list[tuple[int, int | None, int]]) -> None:
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.int64()),
            "b": pa.array([row[1] for row in rows], pa.int64()),
        }
    )
    expected: dict[tuple[object, ...], int] = {}
    for a, b, weight in rows:
        expected[a, b] = expected.get((a, b), 0) + weight

    netted = net_rows(table, pa.array([row[2] for row in rows], pa.int64()))

    assert weights_of(netted) == {row: weight for row, weight in expected.items() if weight}


@pytest.mark.parametrize("identical", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_membership_agrees_with_counting_rows(seed: int, identical: bool) -> None:
    first, *_, second = keyless_history(seed, 6)
    left = first.diff.drop_columns([OLD_COUNT, NEW_COUNT])
    right = second.diff.drop_columns([OLD_COUNT, NEW_COUNT])
    wanted = bag_of(right, identical=identical)
    expected = [
        next(iter(bag_of(left.slice(position, 1), identical=identical))) in wanted
        for position in range(left.num_rows)
    ]

    actual = is_member(left.columns, right.columns, identical=identical)

    assert actual.tolist() == expected


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_difference_is_what_is_there_more_or_less_often(is_nested: bool) -> None:
    def bag(*values: float | None) -> pa.Table:
        kind = pa.list_(pa.float64()) if is_nested else pa.float64()
        held: list[Any] = [[value] if is_nested else value for value in values]
        return pa.table({"value": pa.array(held, kind), "name": ["a"] * len(values)})

    changed = difference(bag(0.0, -math.nan, None, 1.0, 1.0), bag(-0.0, math.nan, 1.0, 2.0))

    values = [row["value"][0] if is_nested else row["value"] for row in changed.to_pylist()]
    counts = zip(changed[OLD_COUNT].to_pylist(), changed[NEW_COUNT].to_pylist(), strict=True)
    assert dict(zip(map(str, values), counts, strict=True)) == {
        **{"None": (0, 1), "1.0": (1, 2), "2.0": (1, 0)},
        **{"0.0": (0, 1), "-0.0": (1, 0)},
    }


def test_many_wide_rows_keep_their_codes_apart() -> None:
    """The product of many columns' codes must not overflow into one another."""
    length = 1_000
    columns = [pa.array(np.random.default_rng(7).permutation(length)) for _ in range(12)]

    codes = row_codes(columns, length)

    assert len(np.unique(codes)) == length


_FEW = st.lists(st.tuples(st.none() | st.integers(0, 2), st.sampled_from(["a", "b"])), max_size=8)


def _pairs(rows: list[tuple[int | None, str]]) -> pa.Table:
    return pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.int64()),
            "b": pa.array([row[1] for row in rows], pa.string()),
        }
    )


@given(_FEW, _FEW)
def test_a_bag_less_another_counts_copies(
    rows: list[tuple[int | None, str]], gone: list[tuple[int | None, str]]
) -> None:
    left = without(_pairs(rows), _pairs(gone))

    found = Counter(tuple(row.values()) for row in left.to_pylist())
    assert found == Counter(rows) - Counter(gone)


@given(_FEW, _FEW)
def test_each_row_finds_its_equal(
    known: list[tuple[int | None, str]], rows: list[tuple[int | None, str]]
) -> None:
    distinct = [*dict.fromkeys(known), (9, "z")]
    columns = _pairs(distinct).combine_chunks(), _pairs(rows).combine_chunks()

    place, is_found = matching_rows(columns[0].columns, columns[1].columns)

    for row, at, has_equal in zip(rows, place, is_found, strict=True):
        assert has_equal == (row in distinct)
        assert not has_equal or distinct[at] == row


def test_zeros_come_with_both_signs() -> None:
    rows = pa.table({"x": [0.0, 1.0, None], "y": pa.array([-0.0, 2.0, 3.0], pa.float32())})

    found = with_both_zeros(rows)

    texts = {tuple(map(str, row.values())) for row in found.to_pylist()}
    assert texts == {
        *(("0.0", y) for y in ("0.0", "-0.0")),
        *(("-0.0", y) for y in ("0.0", "-0.0")),
        ("1.0", "2.0"),
        ("None", "3.0"),
    }
    assert found.schema == rows.schema
