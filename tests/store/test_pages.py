"""The store carries how the project wants its pages to look."""

from __future__ import annotations

from contextlib import closing

import sqlalchemy as sa

from livemart.project.declared.model_page import PageSpec
from livemart.store.connections import open_engine
from livemart.store.pages import read_pages, write_pages
from livemart.store.reader import StoreReader
from livemart.store.served import Dashboard, ProjectPages
from tests.store.stores import fill_store, reference_tables

PAGES = ProjectPages(
    {
        "sales": PageSpec(
            "Größe",
            "lines",
            "day",
            ("sales",),
            ("shop",),
            ("sales",),
            ("day.desc",),
            {"sales": "money"},
            "EUR",
        ),
        "shops": PageSpec(),
    },
    {"owner": Dashboard("The owner's day", "First\n\nSecond", ("sales", "shops"))},
)


def test_pages_are_read_as_they_were_written_and_replaced_as_a_whole(store_url: str) -> None:
    engine = open_engine(store_url, writes=True)
    with engine.begin() as connection:
        for pages in (PAGES, PAGES, ProjectPages(), PAGES):
            write_pages(connection, pages)
            assert read_pages(connection) == pages
        rows = connection.execute(sa.text("select count(*) from livemart_pages"))
        assert rows.scalar() == 1
        connection.execute(sa.text("update livemart_pages set version = 2"))
        assert read_pages(connection) == ProjectPages()
    engine.dispose()


def test_a_store_that_was_filled_before_has_no_pages_and_is_read(store_url: str) -> None:
    fill_store(store_url, reference_tables(), pages=PAGES)
    with closing(StoreReader.open(store_url)) as reader:
        with reader.snapshot() as view:
            assert view.pages() == PAGES
        engine = open_engine(store_url, writes=True)
        with engine.begin() as connection:
            connection.execute(sa.text("drop table livemart_pages"))
        engine.dispose()
        with reader.snapshot() as view:
            assert view.pages() == ProjectPages()
            assert view.row_count("order_arrivals") > 0
