"""Served columns of any name: kept, changed, read and asked for by that name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import publish
from livemart.publish.transaction import Publishing
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.serve.apps import site
from tests.store.served_tables import Versions
from tests.store.stores import fill_store, make_snapshot, net_change

START, HOUR = datetime(2026, 3, 2, tzinfo=UTC), timedelta(hours=1)
# Words that a database may take for its own, of SQLite, PostgreSQL and Spark.
WORDS = """
abort add after all alter always analyze and anti any array as asc at attach autoincrement
before begin between both by cascade case cast check collate column commit concurrently conflict
constraint create cross current current_date current_role current_time current_timestamp
current_user database default deferrable deferred delete desc detach distinct do drop each else
end escape except exclude exclusive exists explain fail false fetch filter first following for
foreign freeze from full function generated glob grant group groups having if ignore ilike
immediate in index indexed initially inner insert instead intersect into is isnull join key last
lateral leading left like limit localtime localtimestamp match materialized minus natural no not
nothing notnull null nulls of offset on only or order others outer over overlaps partition
placing plan pragma preceding primary query raise range recursive references regexp reindex
release rename replace restrict returning right rollback row rows savepoint select semi
session_user set similar some symmetric table tablesample temp temporary then ties time to
trailing transaction trigger true truncate unbounded union unique unknown update user using
vacuum values variadic verbose view virtual when where window with within without
"""
NAMES = (
    "größe",
    "order",
    "CustomerKey",
    "weight",
    "digest",
    "_row_count",
    "a.b",
    "a_b",
    "a:b",
    "50%",
    "(x)",
    "it's",
    'q"q',
    "_value_0",
    "k0",
    "equals_0",
    "tenants",
    "日本",
)


def table(*numbers: int) -> pa.Table:
    """Return rows in which each value is of its row and of its column."""
    return pa.table(
        {
            name: pa.array([100 * number + place for number in numbers], pa.int64())
            for place, name in enumerate(NAMES)
        }
    )


@pytest.mark.parametrize("key", [(), ("order",), ("a.b", "a_b"), NAMES])
def test_odd_columns_are_written_changed_and_read(
    store_url: str, reader: StoreReader, key: tuple[str, ...]
) -> None:
    keys = {"odd": tuple(name.upper() for name in key) if key == ("order",) else key}
    rebuilt = [
        done.rebuilt
        for number, rows in enumerate([table(1, 2, 3), table(1, 3, 4), table(4, 5)], start=1)
        if (done := fill_store(store_url, {"odd": rows}, keys, number)) is not None
    ]

    with reader.snapshot() as view:
        rows = view.rows("odd", tenants=None)
        of_one = view.rows("odd", tenants=None, equals={"a.b": 406, "größe": 400})
        served = view.models()["odd"]
    assert rebuilt == [("odd",), (), ()]
    assert served.row_key == key
    assert sorted(rows, key=str) == sorted(table(4, 5).to_pylist(), key=str)
    assert of_one == table(4).to_pylist()


# 0.5 s.
def test_no_word_of_a_database_is_anything_but_a_name(store_url: str, reader: StoreReader) -> None:
    def of(value: int) -> pa.Table:
        return pa.table({word: pa.array([value], pa.int64()) for word in ["id", *WORDS.split()]})

    for number in (1, 2):
        models = {"words": of(number), "order": of(number), "returning": of(number)}
        fill_store(
            store_url, models, {"words": ("id",), "returning": ("nothing", "select")}, number
        )

    with reader.snapshot() as view:
        for name in ("words", "order", "returning"):
            rows = view.rows(name, tenants=None, equals={"nothing": 2}, order_by=["returning"])
            assert rows == of(2).to_pylist()


# 10 s.
@pytest.mark.extended
def test_every_word_may_name_a_model_its_tenant_and_its_time(
    store_url: str, reader: StoreReader
) -> None:
    words = WORDS.split()
    store = Store.open(store_url)
    try:
        for number, (word, time) in enumerate(zip(words, words[1:] + words[:1], strict=True), 1):
            rows = pa.table(
                {
                    word: ["a", "a", "b"],
                    time: pa.array([START, START + HOUR, START], pa.timestamp("us", tz="UTC")),
                    "weight": [1, 1, 1],
                }
            )
            done = publish(
                store,
                make_snapshot(number, [word], START),
                [ServedSpec(word, f"model.test.{word}", f"gold.{word}", (word, time), time)],
                Versions(lambda relation, old, new, rows=rows: net_change(None, rows)),  # type: ignore[misc]
                Publishing(tenant_column=word),
            )
            assert done is not None and not done.refused

            with reader.snapshot() as view:
                served = view.models()[word]
                shown = view.rows(word, tenants=frozenset({"a"}), since=(time, START + HOUR))
            assert (served.tenant_column, served.time_column) == (word, time)
            assert shown == rows.slice(1, 1).to_pylist()
    finally:
        store.close()


def test_a_row_is_asked_for_by_the_name_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    with site(tmp_path) as running:
        fill_store(running.url, {"odd": table(1, 2)}, {"odd": ("größe", "a:b", "CustomerKey")})
        running.until(lambda: running.shows(1))

        answer = running.client.get(
            "/v1/models/odd",
            params={"key": ["größe:200", "a:b:208", "CustomerKey:202"]},
            headers=running.bearer(),
        )

    assert answer.status_code == 200
    assert answer.json()["rows"] == table(2).to_pylist()
