"""The store carries how the project describes its models, beside their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from livemart.store.connections import open_engine
from livemart.store.descriptions import read_description, write_descriptions
from livemart.store.reader import StoreReader
from livemart.store.served import DescribedTest, ModelDescription
from tests.store.stores import fill_store, reference_tables

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
