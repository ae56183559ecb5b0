"""Random histories: a client that follows the changes always holds the rows that are published.

The oracle is the history itself: what a snapshot's rows are is known before they are published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from livemart.store.predicates import ColumnCondition as Where
from livemart.store.reader import StoreReader
from livemart.store.value_forms import json_value
from tests.store.stores import changes_of, fill_store

SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("restaurant_id", pa.string()),
        ("amount", pa.decimal128(18, 2)),
        ("is_paid", pa.bool_()),
    ]
)
Row = tuple[int, str | None, int, bool | None]
CONDITIONS = (Where("amount", "gte", Decimal("0.01")), Where("is_paid", "eq", True))
# The tenants of each client, and the conditions on the rows that it follows.
CLIENTS: tuple[tuple[frozenset[str] | None, tuple[Where, ...]], ...] = (
    (None, ()),
    (None, CONDITIONS),
    (frozenset({"a"}), ()),
    (frozenset({"a", "b"}), CONDITIONS),
    (frozenset(), ()),
)
_contents = st.tuples(
    st.sampled_from(["a", "b", None]), st.integers(0, 2), st.sampled_from([True, False, None])
)


class Client:
    """Follows the changes of one model for some tenants, page by page."""

    def __init__(
        self,
        reader: StoreReader,
        key: str | None,
        tenants: frozenset[str] | None,
        conditions: Sequence[Where],
    ) -> None:
        self.reader = reader
        self.conditions = conditions
        self.tenants = tenants
        self.key = key
        self.position: int | None = None
        self.by_key: dict[Any, dict[str, Any]] = {}
        self.bag: Counter[tuple[Any, ...]] = Counter()

    def follow(self, limit: int) -> None:
        if self.position is None:
            return self.read_all()
        while True:
            page = changes_of(
                self.reader,
                "orders",
                self.position,
                self.tenants,
                limit,
                conditions=self.conditions,
            )
            if page.kind == "reset":
                return self.read_all()
            for change in page.changes:
                self.apply(change.op, change.row)
            is_at_end = page.upto == self.position or not page.read
            self.position = page.upto
            if is_at_end:
                return None

    def read_all(self) -> None:
        self.by_key, self.bag = {}, Counter()
        with self.reader.snapshot() as view:
            for row in view.rows("orders", tenants=self.tenants, conditions=self.conditions):
                self.apply("insert", {name: json_value(value) for name, value in row.items()})
            self.position = view.published.snapshot_id

    def apply(self, op: str, row: dict[str, Any]) -> None:
        values = tuple(row.values())
        if self.key is None:
            assert op in ("insert", "delete")
            self.bag[values] += 1 if op == "insert" else -1
            assert self.bag[values] >= 0
            return
        key = row[self.key]
        assert (key in self.by_key) == (op != "insert"), f"{op} of {key}"
        if op == "delete":
            assert self.by_key.pop(key) == row
        else:
            self.by_key[key] = row

    def rows(self) -> Counter[tuple[Any, ...]]:
        held = Counter(tuple(row.values()) for row in self.by_key.values())
        return held + self.bag


def to_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            dict(zip(SCHEMA.names, (key, tenant, Decimal(cents) / 100, paid), strict=True))
            for key, tenant, cents, paid in rows
        ],
        schema=SCHEMA,
    )


def expected_rows(rows: Sequence[Row], client: Client) -> Counter[tuple[Any, ...]]:
    return Counter(
        (key, tenant, f"0.0{cents}", paid)
        for key, tenant, cents, paid in rows
        if (client.tenants is None or tenant in client.tenants)
        and (not client.conditions or (cents >= 1 and paid))
    )


def follow_history(
    url: str, history: Sequence[Sequence[Row]], key: str | None, late: int, limit: int
) -> None:
    """Publish a history; after each snapshot some clients follow, one of them only at the end."""
    reader = StoreReader.open(url)
    keys: Mapping[str, Sequence[str]] = {"orders": (key,)} if key else {}
    clients, sleepers = ([Client(reader, key, *each) for each in CLIENTS] for _ in range(2))
    for number, rows in enumerate(history, start=1):
        fill_store(url, {"orders": to_table(rows)}, keys, number)
        for client in clients:
            client.follow(limit)
            assert client.rows() == expected_rows(rows, client)
        if number == late:
            for client in sleepers:
                client.follow(limit)
    for client in sleepers:
        client.follow(limit)
        assert client.rows() == expected_rows(history[-1], client)
    reader.close()


@settings(max_examples=8)
@given(
    history=st.lists(
        st.dictionaries(st.integers(1, 4), _contents, max_size=4), min_size=2, max_size=6
    ),
    late=st.integers(1, 3),
    limit=st.integers(1, 5),
)
def test_followers_of_a_keyed_model_hold_its_rows(
    new_store: Callable[[], str],
    history: list[dict[int, tuple[str | None, int, bool | None]]],
    late: int,
    limit: int,
) -> None:
    rows = [[(key, *content) for key, content in each.items()] for each in history]

    follow_history(new_store(), rows, "order_id", late, limit)


@settings(max_examples=8)
@given(
    history=st.lists(
        st.lists(st.tuples(st.integers(1, 2), _contents), max_size=5), min_size=2, max_size=6
    ),
    late=st.integers(1, 3),
    limit=st.integers(1, 5),
)
def test_followers_of_a_model_without_key_hold_its_rows_as_often(
    new_store: Callable[[], str],
    history: list[list[tuple[int, tuple[str | None, int, bool | None]]]],
    late: int,
    limit: int,
) -> None:
    rows = [[(number, *content) for number, content in each] for each in history]

    follow_history(new_store(), rows, None, late, limit)
