"""Every type of a warehouse keeps its values, its order and its equality in both databases."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.python_rows import python_rows
from livemart.arrow.single_floats import shortest_double
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import publish
from livemart.publish.transaction import Publishing
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from livemart.store.value_forms import json_value
from tests.disagreeing_values import KINDS as DISAGREEING
from tests.store.served_tables import Versions
from tests.store.stores import changes_of, fill_store, make_snapshot, net_change

MOMENT = datetime(2026, 3, 2, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def _is_ordered(value: Any) -> bool:
    """Return False for NaN and -0.0, of which other tests are."""
    return value == value and str(value) != "-0.0"


# Each in ascending order, as Spark sorts: texts by code point.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    kind.spark: (
        kind.arrow,
        sorted(
            shortest_double(value) if kind.spark == "float" else value
            for value in filter(_is_ordered, kind.values)
        ),
    )
    for kind in DISAGREEING.values()
    if not pa.types.is_nested(kind.arrow) and kind.spark != "timestamp_ntz"
}
KINDS = sorted(VALUES)


def make_table(kind: str) -> tuple[pa.Table, list[Any]]:
    """Return a table of the values in a shuffled order, and a NULL; and the values in theirs."""
    arrow, values = VALUES[kind]
    mixed = [*values[1::2], None, *values[::2]]
    table = pa.table(
        {
            "number": pa.array(range(len(mixed)), pa.int64()),
            "value": pa.array(mixed, arrow),
            "again": pa.array(mixed, arrow),
        }
    )
    return table, values


@pytest.mark.parametrize("kind", KINDS)
def test_values_come_back_in_their_order_and_are_found(
    store_url: str, reader: StoreReader, kind: str
) -> None:
    table, values = make_table(kind)

    fill_store(store_url, {"m": table}, {"m": ("number",)})

    with reader.snapshot() as view:
        rows = view.rows("m", tenants=None)
        ascending = view.rows("m", tenants=None, order_by=["value"])
        descending = view.rows("m", tenants=None, order_by=["value"], descending=True)
        found = [view.rows("m", tenants=None, equals={"value": value}) for value in values]
        nulls = view.rows("m", tenants=None, equals={"value": None})
    assert rows == python_rows(table)
    assert [row["value"] for row in ascending] == [None, *values]
    assert [row["value"] for row in descending] == [*reversed(values), None]
    assert [[row["value"] for row in each] for each in found] == [[value] for value in values]
    assert [row["value"] for row in nulls] == [None]
    assert all(type(row["value"]) is type(values[0]) for row in ascending[1:])


@pytest.mark.gate_takes_every(3)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_keys_and_tell_rows_without_key_apart(
    store_url: str, reader: StoreReader, kind: str
) -> None:
    table, values = make_table(kind)
    keyed = table.filter(pa.compute.is_valid(table["value"]))

    fill_store(store_url, {"keyed": keyed, "bag": table}, {"keyed": ("value",)})
    fill_store(
        store_url, {"keyed": keyed.slice(1), "bag": table.slice(1)}, {"keyed": ("value",)}, 2
    )

    with reader.snapshot() as view:
        key = view.models()["keyed"].row_key
        rows = view.rows("keyed", tenants=None)
        bag = view.rows("bag", tenants=None)
    gone = [changes_of(reader, model, 1, None, 10).changes for model in ("keyed", "bag")]
    first = python_rows(keyed)[0]["value"]
    assert key == ("value",)
    assert [row["value"] for row in rows] == [value for value in values if value != first]
    assert sorted(row["number"] for row in bag) == list(range(1, table.num_rows))
    expected = {"number": 0, "value": json_value(python_rows(table)[0]["value"])}
    for (change,) in gone:
        assert (change.op, change.row) == ("delete", {**expected, "again": expected["value"]})


def test_not_a_number_stays_one_and_is_the_greatest(store_url: str, reader: StoreReader) -> None:
    nan = float("nan")
    table = pa.table({"number": [1, 2, 3, 4], "value": [nan, None, -0.0, float("inf")]})

    fill_store(store_url, {"m": table}, {"m": ("number",)})

    with reader.snapshot() as view:
        rows = view.rows("m", tenants=None, order_by=["value"])
        found = view.rows("m", tenants=None, equals={"value": nan})
    assert [str(row["value"]) for row in rows] == ["None", "0.0", "inf", "nan"]
    assert [row["number"] for row in found] == [1]


def test_a_decimal_is_found_however_it_is_written(store_url: str, reader: StoreReader) -> None:
    amounts = pa.array([Decimal("0.00"), Decimal("1.50")], pa.decimal128(9, 2))

    fill_store(store_url, {"m": pa.table({"amount": amounts})}, {"m": ("amount",)})

    with reader.snapshot() as view:
        found = [
            [row["amount"] for row in view.rows("m", tenants=None, equals={"amount": value})]
            for value in map(Decimal, ("-0.00", "0", "-0", "1.5", "1.500", "1.501"))
        ]
    zero, other = ([amount] for amount in amounts.to_pylist())
    assert found == [zero, zero, zero, other, other, []]


def test_nested_values_are_json(store_url: str, reader: StoreReader) -> None:
    lines = pa.list_(pa.struct([("dish", pa.string()), ("price", pa.decimal128(9, 2))]))
    table = pa.table(
        {
            "number": [1, 2],
            "lines": pa.array([[{"dish": "Crème\0", "price": Decimal("1.10")}], None], lines),
            "tags": pa.array([[("b", 1), ("a", 2)], []], pa.map_(pa.string(), pa.int32())),
        }
    )

    fill_store(store_url, {"m": table}, {"m": ("number",)})

    with reader.snapshot() as view:
        rows = view.rows("m", tenants=None)
    assert json.loads(json.dumps(rows)) == [
        {"number": 1, "lines": [{"dish": "Crème\0", "price": "1.10"}], "tags": {"a": 2, "b": 1}},
        {"number": 2, "lines": None, "tags": {}},
    ]


def test_text_with_nul_is_kept_as_far_as_the_database_can(
    store_url: str, reader: StoreReader
) -> None:
    table = pa.table({"restaurant_id": ["r\0"], "dish_name": ["a\0b"]})
    expected = "a\ufffdb" if store_url.startswith("postgresql") else "a\0b"

    fill_store(store_url, {"m": table}, {"m": ("restaurant_id",)})
    fill_store(store_url, {"m": table.slice(1)}, {"m": ("restaurant_id",)}, 2)

    (change,) = changes_of(reader, "m", 1, None, 10).changes
    assert change.row["dish_name"] == expected


@pytest.mark.parametrize("key", [("restaurant_id",), ()])
def test_changes_of_a_text_with_nul_name_the_row_that_readers_have(
    store_url: str, reader: StoreReader, key: tuple[str, ...]
) -> None:
    before = pa.table({"restaurant_id": ["r\0"], "dish_name": ["a\0b"], "n": [1]})
    after = before.set_column(2, "n", pa.array([2]))
    fill_store(store_url, {"m": before}, {"m": key} if key else {})
    with reader.snapshot() as view:
        (row,) = view.rows("m", tenants=None)

    # As the warehouse has them: it keeps each text.
    spec = ServedSpec("m", "model.test.m", "gold.m", key, None)
    with closing(Store.open(store_url)) as store:
        change = Versions(lambda *_: net_change(before, after))
        how = Publishing(tenant_column="restaurant_id")
        publish(store, make_snapshot(2, ["m"]), [spec], change, how)

    (*_, last) = changes_of(reader, "m", 1, None, 10).changes
    assert last.row == {**row, "n": 2}


def test_a_decimal_between_two_of_the_column_equals_neither(
    store_url: str, reader: StoreReader
) -> None:
    table = pa.table({"number": [1], "value": pa.array([Decimal("5.01")], pa.decimal128(18, 2))})
    fill_store(store_url, {"m": table}, {"m": ("number",)})

    with reader.snapshot() as view:
        rows = [
            view.rows("m", tenants=None, equals={"value": Decimal(text)})
            for text in ("5.01", "5.010", "5.014", "5", "1" * 40)
        ]

    assert [len(found) for found in rows] == [1, 1, 0, 0, 0]


def test_hostile_names_are_names(store_url: str, reader: StoreReader) -> None:
    columns = ["select", "a b", 'quo"te', "per%cent", ":colon", "(", "x" * 120, "é", "_row_hash"]
    table = pa.table({name: pa.array([number]) for number, name in enumerate(columns)})
    model = "Größe; drop table livemart_published --" + "y" * 100

    fill_store(store_url, {model: table, "m": table}, {"m": ("per%cent", ":colon")})
    fill_store(store_url, {model: table, "m": table.slice(1)}, {"m": ("per%cent", ":colon")}, 2)

    with reader.snapshot() as view:
        assert view.rows(model, tenants=None, equals={'quo"te': 2}) == table.to_pylist()
        assert view.rows("m", tenants=None) == []
    assert [
        change.row for change in changes_of(reader, "m", 1, None, 9).changes
    ] == table.to_pylist()


def test_days_are_found_by_moments(store_url: str, reader: StoreReader) -> None:
    days = [date(2026, 3, day) for day in (1, 2, 3)]
    fill_store(store_url, {"m": pa.table({"day": days})}, {"m": ("day",)})

    def between(start: datetime, end: datetime) -> list[int]:
        with reader.snapshot() as view:
            rows = view.rows("m", tenants=None, since=("day", start), until=("day", end))
        return [row["day"].day for row in rows]

    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    assert between(midnight, midnight + timedelta(days=1)) == [2]
    assert between(midnight + TICK, midnight + timedelta(days=2)) == [3]
    assert between(midnight - timedelta(days=1), midnight + TICK) == [1, 2]
    assert between(midnight, datetime.max.replace(tzinfo=UTC)) == [2, 3]


def test_the_last_day_is_found_by_its_moments(store_url: str, reader: StoreReader) -> None:
    days = pa.table({"day": [date(9999, 12, 30), date.max]})
    fill_store(store_url, {"m": days}, {"m": ("day",)})

    def found(since: datetime | None, until: datetime | None) -> list[int]:
        with reader.snapshot() as view:
            rows = view.rows(
                "m",
                tenants=None,
                since=None if since is None else ("day", since),
                until=None if until is None else ("day", until),
            )
        return [row["day"].day for row in rows]

    midnight = datetime(9999, 12, 31, tzinfo=UTC)
    assert (found(None, midnight), found(None, midnight + TICK)) == ([30], [30, 31])
    assert (found(midnight, None), found(midnight + TICK, None)) == ([31], [])


@pytest.mark.parametrize("arrow", [pa.int64(), pa.int32(), pa.string()])
def test_tenants_are_found_by_text_whatever_the_type_of_their_id(
    store_url: str, reader: StoreReader, arrow: pa.DataType
) -> None:
    ids = pa.array([1, 2, None], pa.int64()).cast(arrow)
    table = pa.table({"restaurant_id": ids, "number": [1, 2, 3]})
    fill_store(store_url, {"m": table}, {"m": ("number",)})
    fill_store(store_url, {"m": table.slice(0, 0)}, {"m": ("number",)}, 2)

    def of(*tenants: str) -> list[int]:
        page = changes_of(reader, "m", 1, frozenset(tenants), 10)
        return [change.row["number"] for change in page.changes]

    fill_store(store_url, {"m": table}, {"m": ("number",)}, 3)
    with reader.snapshot() as view:
        rows = view.rows("m", tenants=frozenset({"2", "01", "x", "' or 1=1 --"}))
    assert [row["number"] for row in rows] == [2]
    assert (of("1"), of("2"), of("None"), of(), of("x")) == ([1, 1], [2, 2], [], [], [])


def test_a_tenant_column_of_another_type_belongs_to_nobody(
    store_url: str, reader: StoreReader
) -> None:
    table = pa.table({"restaurant_id": [1.0], "number": [1]})
    fill_store(store_url, {"m": table}, {"m": ("number",)})

    with reader.snapshot() as view:
        assert view.models()["m"].tenant_column is None
        assert view.rows("m", tenants=frozenset({"1.0", "1"})) == []
