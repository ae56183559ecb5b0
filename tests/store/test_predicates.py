"""The tenant rule: a reader gets the rows and changes of its tenants, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from livemart.store.predicates import change_predicates, row_predicates, tenant_ids
from livemart.store.schema import CHANGES, Layout, served_table
from livemart.store.served import ServedModel

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
COLUMNS = (("n", "int"), ("shop", "string"), ("at", "timestamp"), ("day", "date"))
SALES = ServedModel("sales", COLUMNS, ("n",), "shop")
ROWS: list[dict[str, Any]] = [
    {"n": 1, "shop": "a", "at": NOON, "day": date(2026, 3, 2)},
    {"n": 2, "shop": "b", "at": NOON, "day": date(2026, 3, 2)},
    {"n": 3, "shop": None, "at": None, "day": None},
    {"n": 4, "shop": "a", "at": NOON + timedelta(hours=1), "day": date(2026, 3, 3)},
]


@pytest.fixture
def connection() -> Iterator[sa.Connection]:
    """A store of two tenants' rows and changes; one row is no tenant's."""
    engine = sa.create_engine("sqlite://")
    with engine.begin() as opened:
        table = served_table(Layout("served_sales", SALES))
        table.create(opened)
        CHANGES.create(opened)
        opened.execute(sa.insert(table), ROWS)
        for row in ROWS:
            change = {"model": "sales", "snapshot_id": 1, "position": row["n"], "op": "insert"}
            opened.execute(sa.insert(CHANGES).values(**change, tenant=row["shop"], row={}))
        yield opened
    engine.dispose()


def rows(
    connection: sa.Connection,
    tenants: frozenset[str] | None,
    served: ServedModel = SALES,
    **asked: Any,
) -> list[int]:
    """Return the numbers of the rows that a reader gets."""
    table = served_table(Layout("served_sales", served))
    predicates = row_predicates(table, served, "sqlite", tenants=tenants, **asked)
    query = sa.select(table.c.n).where(*predicates).order_by(table.c.n)
    return list(connection.execute(query).scalars())


def changes(
    connection: sa.Connection, tenants: frozenset[str] | None, served: ServedModel = SALES
) -> list[int]:
    """Return the numbers of the rows whose changes a reader gets."""
    predicates = change_predicates(served, tenants)
    query = sa.select(CHANGES.c.position).where(*predicates).order_by(CHANGES.c.position)
    return list(connection.execute(query).scalars())


@pytest.mark.parametrize(
    ("tenants", "expected"),
    [
        (None, [1, 2, 3, 4]),
        (frozenset({"a"}), [1, 4]),
        (frozenset({"a", "b"}), [1, 2, 4]),
        (frozenset({"unknown"}), []),
        (frozenset(), []),
    ],
)
def test_a_reader_gets_the_rows_and_changes_of_its_tenants(
    connection: sa.Connection, tenants: frozenset[str] | None, expected: list[int]
) -> None:
    assert rows(connection, tenants) == expected
    assert changes(connection, tenants) == expected


def test_a_model_without_tenants_is_for_those_who_may_read_all(connection: sa.Connection) -> None:
    served = ServedModel("sales", COLUMNS, ("n",), None)

    assert rows(connection, frozenset({"a"}), served) == []
    assert changes(connection, frozenset({"a"}), served) == []
    assert rows(connection, None, served) == changes(connection, None, served) == [1, 2, 3, 4]


def test_no_query_is_made_without_whose_rows_it_reads() -> None:
    table = served_table(Layout("served_sales", SALES))

    with pytest.raises((KeyError, TypeError), match="tenants"):
        row_predicates(table, SALES, dialect="sqlite")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="tenants"):
        change_predicates(SALES)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "expected"), [("string", ["01", "1", "x"]), ("int", [1]), ("bigint", [1])]
)
def test_an_id_is_read_only_as_it_is_written(kind: str, expected: list[object]) -> None:
    assert tenant_ids(kind, frozenset({"1", "01", "x"})) == expected


def test_values_and_times_narrow_what_the_tenant_may_see(connection: sa.Connection) -> None:
    mine = frozenset({"a"})

    assert rows(connection, mine, equals={"n": 2}) == []
    assert rows(connection, mine, equals={"n": 4, "shop": "a"}) == [4]
    assert rows(connection, None, equals={"shop": None}) == [3]
    assert rows(connection, mine, since=("at", NOON), until=("at", ROWS[3]["at"])) == [1]
    assert rows(connection, mine, since=("day", NOON)) == [4]
    assert rows(connection, mine, until=("day", NOON)) == [1]
