"""The store carries how the project describes its models, beside their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import publish
from livemart.store.connections import open_engine
from livemart.store.descriptions import read_description, write_descriptions
from livemart.store.reader import StoreReader
from livemart.store.served import DescribedTest, ModelDescription
from livemart.store.store import Store
from tests.serve.owner.order_versions import START, orders
from tests.store.served_tables import Versions
from tests.store.stores import fill_store, make_snapshot, net_change, reference_tables

SALES = ModelDescription(
    text="Sales by day.\0 Größe",
    columns={"day": "Of the shop's calendar"},
    tests=(
        DescribedTest("not_null_sales_day", "not_null", "day", "error", "pass"),
        DescribedTest("few_refunds", None, None, "warn"),
    ),
    sql="select * from {{ ref('orders') }}",
    compiled_sql="select * from `gold`.`orders`",
)


@pytest.fixture
def engine(store_url: str) -> Iterator[Engine]:
    engine = open_engine(store_url, writes=True)
    yield engine
    engine.dispose()


def read(engine: Engine, model: str) -> ModelDescription | None:
    with engine.begin() as connection:
        found = read_description(connection, model)
        # The transaction goes on, also where the table is missing.
        assert connection.execute(sa.select(1)).scalar() == 1
        return found


def test_a_description_is_read_as_it_was_written(engine: Engine) -> None:
    with engine.begin() as connection:
        write_descriptions(connection, {"sales": SALES, "shops": ModelDescription()})

    assert read(engine, "sales") == SALES
    assert read(engine, "shops") == ModelDescription()
    assert read(engine, "orders") is None


def test_descriptions_are_replaced_and_those_of_gone_models_removed(engine: Engine) -> None:
    with engine.begin() as connection:
        write_descriptions(connection, {"sales": SALES, "shops": ModelDescription()})
        write_descriptions(connection, {"sales": ModelDescription(text="Edited")})

    assert read(engine, "sales") == ModelDescription(text="Edited")
    assert read(engine, "shops") is None


def test_a_store_that_was_filled_before_has_no_descriptions_and_is_read(store_url: str) -> None:
    fill_store(store_url, reference_tables())
    engine = open_engine(store_url, writes=True)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table livemart_descriptions"))
    engine.dispose()

    with closing(StoreReader.open(store_url)) as reader, reader.snapshot() as view:
        assert view.description("order_arrivals") is None
        assert view.row_count("order_arrivals") > 0


def test_a_description_of_another_version_is_none(engine: Engine) -> None:
    with engine.begin() as connection:
        write_descriptions(connection, {"sales": SALES})
        connection.execute(
            sa.text("update livemart_descriptions set content = replace(content, :old, :new)"),
            {"old": '"version":1', "new": '"version":2,"more":1'},
        )

    assert read(engine, "sales") is None


def test_an_open_store_is_not_asked_again_for_the_descriptions_that_it_was_given(
    store_url: str,
) -> None:
    """Most snapshots change none, and a project has hundreds. Another publisher is noticed."""
    asked = list[int]()

    def publish_number(store: Store, number: int, text: str) -> None:
        spec = ServedSpec(
            "orders",
            "model.test.orders",
            "gold.orders",
            ("order_id",),
            None,
            ModelDescription(text),
        )
        snapshot = make_snapshot(number, ["orders"], START)

        def read_change(_: str, old: int | None, new: int) -> pa.Table:
            return net_change(None if old is None else orders(old), orders(new))

        def note(*execution: Any) -> None:
            if "livemart_descriptions" in f"{execution[2]} {execution[3]}":
                asked.append(number)

        sa.event.listen(store.engine, "before_cursor_execute", note)
        assert publish(store, snapshot, [spec], Versions(read_change)) is not None
        sa.event.remove(store.engine, "before_cursor_execute", note)

    def shown() -> str:
        with closing(StoreReader.open(store_url)) as reader, reader.snapshot() as view:
            description = view.description("orders")
            return "" if description is None else description.text

    with closing(Store.open(store_url)) as store, closing(Store.open(store_url)) as other:
        for number in (1, 2, 3, 4):
            publish_number(store, number, "Orders")
        assert set(asked) == {1, 2} and shown() == "Orders"
        publish_number(other, 5, "Edited")
        assert 5 in asked and shown() == "Edited"
        publish_number(store, 6, "Orders")
        assert 6 in asked and shown() == "Orders"
        publish_number(store, 7, "Orders again")
        assert 7 in asked and shown() == "Orders again"
