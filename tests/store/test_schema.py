"""A served table takes any model: names of every kind, with a key and without one."""

from __future__ import annotations

import sqlalchemy as sa

from livemart.store.schema import ROW_COUNT, ROW_HASH, Layout, bag_column, served_table, table_name
from livemart.store.served import ServedModel

COLUMNS = (("n", "int"), ("shop", "string"), ("at", "timestamp"), ("Größe; drop", "double"))


def table_of(key: tuple[str, ...], tenant: str | None, time: str | None = None) -> sa.Table:
    return served_table(Layout("served_m", ServedModel("m", COLUMNS, key, tenant, time)))


def test_the_key_is_the_primary_key_in_its_own_order_and_others_may_be_null() -> None:
    table = table_of(("shop", "n"), "shop")

    assert [column.key for column in table.primary_key] == ["shop", "n"]
    assert [column.key for column in table.columns if column.nullable] == ["at", "Größe; drop"]
    # Its index finds the rows of a tenant.
    assert table.indexes == set()


def test_a_tenant_that_does_not_lead_the_key_has_an_index_and_so_has_its_time() -> None:
    indexes = {
        str(index.name): [column.name for column in index.columns]
        for index in table_of(("n",), "shop", "at").indexes
    }

    assert indexes == {
        "ix_served_m_tenant": ["shop"],
        "ix_served_m_time": ["shop", "at"],
    }


def test_without_a_key_rows_are_kept_with_their_number() -> None:
    table = table_of((), None)

    assert [column.key for column in table.primary_key] == [ROW_HASH]
    assert table.c[ROW_COUNT].nullable is False
    model = ServedModel("m", ((ROW_HASH.upper(), "int"),), (), None)
    assert bag_column(model, ROW_HASH) == f"_{ROW_HASH}"


def test_every_name_is_one_that_all_databases_take_and_no_two_become_one() -> None:
    long = "a" * 80
    names = [table_name(name, ()) for name in ("m", long, f"{long}b", "größe", "gr__e", "m; drop")]
    columns = [column.name for column in table_of((), None).columns]

    assert names[0] == "served_m" and len(set(names)) == len(names)
    assert all(len(name) <= 50 and name.isascii() for name in (*names, *columns))
    assert all(name.replace("_", "").isalnum() for name in (*names, *columns))
    assert table_name("m", {"served_m", "served_m_2"}) == "served_m_3"
