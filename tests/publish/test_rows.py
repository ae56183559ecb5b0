"""A net change is written onto the rows it belongs to, and refused where it does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from livemart.arrow.bags import WEIGHT
from livemart.arrow.types import plain_table
from livemart.publish.insert import KeyNotUniqueError
from livemart.publish.rows import RowsDifferError, apply_change, fill
from livemart.store.column_types import write_json
from livemart.store.schema import Layout, bag_column, served_table
from livemart.store.served import ServedModel
from livemart.store.store import Store
from tests.unit.arrow.test_variants import nested

COLUMNS = (("n", "bigint"), ("shop", "string"), ("amount", "bigint"))
KEYED = Layout("served_keyed", ServedModel("sales", COLUMNS, ("n",), "shop"))
BAG = Layout("served_bag", ServedModel("sales", COLUMNS, (), "shop"))
Sale = tuple[int | None, str | None, int]
ROWS: list[tuple[Sale, int]] = [((1, "a", 10), 1), ((2, "b", 20), 1), ((3, None, 30), 1)]


@pytest.fixture
def connection(store_url: str) -> Iterator[sa.Connection]:
    with closing(Store.open(store_url)) as store, store.begin() as opened:
        yield opened


def weighted(*rows: tuple[Sale, int]) -> pa.Table:
    columns = list(zip(*(row for row, _ in rows), strict=True))
    return pa.table(
        {
            "n": pa.array(columns[0], pa.int64()),
            "shop": pa.array(columns[1], pa.string()),
            "amount": pa.array(columns[2], pa.int64()),
            WEIGHT: pa.array([weight for _, weight in rows], pa.int64()),
        }
    )


def filled(connection: sa.Connection, layout: Layout, *rows: tuple[Sale, int]) -> int:
    return fill(connection, layout, [weighted(*rows)], lambda: None)


def changes(
    connection: sa.Connection, layout: Layout, *rows: tuple[Sale, int]
) -> list[tuple[str, str | None, Any]]:
    """Apply a change; return operation, tenant and number of each row."""
    told = apply_change(connection, layout, weighted(*rows))
    return [(change.op, change.tenant, change.row["n"]) for change in told]


def stored(connection: sa.Connection, layout: Layout) -> list[Any]:
    """Return the rows as often as they count."""
    table, model = served_table(layout), layout.model
    columns = [table.c[name] for name, _ in model.columns]
    if not model.row_key:
        columns.append(table.c[bag_column(model, "_row_count")])
    rows: list[Any] = [tuple(row) for row in connection.execute(sa.select(*columns))]
    if not model.row_key:
        rows = [row[:-1] for row in rows for _ in range(row[-1])]
    return sorted(rows, key=str)


@pytest.mark.parametrize("layout", [KEYED, BAG])
def test_all_rows_are_written(connection: sa.Connection, layout: Layout) -> None:
    assert filled(connection, layout, *ROWS) == 3
    assert stored(connection, layout) == [row for row, _ in ROWS]


def test_a_keyed_row_is_inserted_updated_or_deleted(connection: sa.Connection) -> None:
    filled(connection, KEYED, *ROWS)

    told = changes(
        connection,
        KEYED,
        ((1, "a", 10), -1),
        ((1, "a", 11), 1),
        ((2, "b", 20), -1),
        ((4, "a", 40), 1),
    )

    assert told == [("delete", "b", 2), ("update", "a", 1), ("insert", "a", 4)]
    assert stored(connection, KEYED) == [(1, "a", 11), (3, None, 30), (4, "a", 40)]


@pytest.mark.parametrize(("key", "ops"), [(("n",), {"update"}), ((), {"delete", "insert"})])
def test_another_order_of_a_map_and_another_sign_of_zero_are_published(
    connection: sa.Connection, key: tuple[str, ...], ops: set[str]
) -> None:
    columns = (("n", "bigint"), ("d", "double"), ("m", "json"))
    layout = Layout("served_maps", ServedModel("maps", columns, key, None))

    def rows(values: list[tuple[int, float, list[tuple[str, int]]]], *weights: int) -> pa.Table:
        numbers, doubles, maps = zip(*values, strict=True)
        kind = pa.map_(pa.string(), pa.int64())
        shown = {"n": numbers, "d": pa.array(doubles, pa.float64()), "m": pa.array(maps, kind)}
        return pa.table({**shown, WEIGHT: pa.array(weights, pa.int64())})

    old = [(1, 0.0, [("a", 1), ("b", 2)]), (2, -0.0, [])]
    new = [(1, 0.0, [("b", 2), ("a", 1)]), (2, 0.0, [])]
    fill(connection, layout, [rows(old, 1, 1)], lambda: None)

    told = apply_change(connection, layout, rows(old + new, -1, -1, 1, 1))

    assert {change.op for change in told} == ops
    by_number = {number: (value, shown) for number, value, shown in stored(connection, layout)}
    assert [list(by_number[number][1]) for number in (1, 2)] == [["b", "a"], []]
    assert str(by_number[2][0]) == "0.0"


def test_a_row_whose_key_is_nan_is_updated_as_any_other(connection: sa.Connection) -> None:
    columns = (("d", "double"), ("n", "bigint"))
    layout = Layout("served_nan", ServedModel("measured", columns, ("d",), None))

    def rows(*numbers: int, weights: tuple[int, ...]) -> pa.Table:
        doubles = pa.array([float("nan") for _ in numbers])
        return pa.table({"d": doubles, "n": pa.array(numbers), WEIGHT: pa.array(weights)})

    fill(connection, layout, [rows(1, weights=(1,))], lambda: None)

    told = apply_change(connection, layout, rows(1, 2, weights=(-1, 1)))

    assert [(change.op, change.row, change.replaced) for change in told] == [
        ("update", {"d": "NaN", "n": 2}, {"n": 1})
    ]
    assert str(stored(connection, layout)) == "[(nan, 2)]"


def test_an_update_keeps_what_it_replaced_and_no_more(connection: sa.Connection) -> None:
    filled(connection, KEYED, *ROWS)

    told = apply_change(connection, KEYED, weighted(((1, "a", 10), -1), ((1, "a", 11), 1)))

    names = [name for name, _ in KEYED.model.columns]
    assert [change.replaced for change in told] == [{names[2]: 10}]


def test_an_update_keeps_each_value_that_json_writes_in_another_way(
    connection: sa.Connection,
) -> None:
    texts = ["true", "1", "1e0", '{"a":[1e0]}', '{"a":[1]}', '{"a":[true]}', "0", "false"]
    layout = Layout(
        "served_variants", ServedModel("m", (("n", "int"), ("v", "json")), ("n",), None)
    )

    def rows(texts: list[str], weight: int) -> pa.Table:
        weights = pa.repeat(pa.scalar(weight, pa.int64()), len(texts))
        shown = {"n": range(len(texts)), "v": plain_table(nested(*texts))["v"], WEIGHT: weights}
        return pa.table(shown)

    fill(connection, layout, [rows(texts, 1)], lambda: None)
    new = [*texts[1:], texts[0]]

    told = apply_change(connection, layout, pa.concat_tables([rows(texts, -1), rows(new, 1)]))

    replaced = [write_json((change.replaced or {}).get("v")) for change in told]
    assert replaced == [text.replace("1e0", "1.0") for text in texts]


def test_a_row_that_goes_to_another_tenant_is_deleted_for_the_first(
    connection: sa.Connection,
) -> None:
    filled(connection, KEYED, *ROWS)

    told = changes(connection, KEYED, ((1, "a", 10), -1), ((1, "b", 10), 1))

    assert told == [("delete", "a", 1), ("insert", "b", 1)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ([((9, "a", 1), -1)], RowsDifferError),
        ([((1, "a", 1), 1)], RowsDifferError),
        ([((9, "a", 1), 2)], KeyNotUniqueError),
        ([((9, "a", 1), 1), ((9, "a", 2), 1)], KeyNotUniqueError),
        ([((None, "a", 1), 1)], KeyNotUniqueError),
    ],
)
def test_a_change_that_does_not_fit_is_refused(
    connection: sa.Connection, change: list[tuple[Sale, int]], error: type[Exception]
) -> None:
    filled(connection, KEYED, *ROWS)

    with pytest.raises(error), connection.begin_nested():
        changes(connection, KEYED, *change)


@pytest.mark.parametrize(
    "rows",
    [
        [((1, "a", 1), 1), ((1, "a", 2), 1)],
        [((1, "a", 1), 2)],
        [((None, "a", 1), 1)],
    ],
)
def test_a_table_cannot_have_a_key_that_does_not_hold(
    connection: sa.Connection, rows: list[tuple[Sale, int]]
) -> None:
    with pytest.raises(KeyNotUniqueError), connection.begin_nested():
        filled(connection, KEYED, *rows)


def test_rows_without_a_key_count_as_often_as_they_come(connection: sa.Connection) -> None:
    assert filled(connection, BAG, ((1, "a", 10), 2), ((1, "a", 10), 1), ((2, "b", 20), 1)) == 4

    told = changes(connection, BAG, ((3, "b", 30), 2), ((1, "a", 10), -2), ((2, "b", 20), -1))

    assert told == [("delete", "a", 1)] * 2 + [("delete", "b", 2)] + [("insert", "b", 3)] * 2
    assert stored(connection, BAG) == [(1, "a", 10), (3, "b", 30), (3, "b", 30)]


@pytest.mark.parametrize("change", [((1, "a", 10), -2), ((9, "a", 1), -1)])
def test_more_rows_than_there_are_cannot_go(
    connection: sa.Connection, change: tuple[Sale, int]
) -> None:
    filled(connection, BAG, *ROWS)

    with pytest.raises(RowsDifferError):
        changes(connection, BAG, change)


@pytest.mark.parametrize("layout", [KEYED, BAG])
def test_rows_come_in_parts_and_are_one_table(connection: sa.Connection, layout: Layout) -> None:
    parts = [weighted(ROWS[0]), weighted(*ROWS[1:])]
    assert fill(connection, layout, parts, lambda: None) == 3
    assert stored(connection, layout) == [row for row, _ in ROWS]


def test_equal_rows_of_two_parts_are_counted_and_have_no_key(connection: sa.Connection) -> None:
    parts = [weighted(*ROWS), weighted(ROWS[0])]
    with pytest.raises(KeyNotUniqueError), connection.begin_nested():
        fill(connection, KEYED, parts, lambda: None)

    assert fill(connection, BAG, parts, lambda: None) == 4
    assert stored(connection, BAG) == sorted([*(row for row, _ in ROWS), ROWS[0][0]], key=str)
