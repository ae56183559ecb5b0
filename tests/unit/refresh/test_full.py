"""A full refresh: which version of which table its SQL reads, and who reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import RefreshError
from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.project.graph import Column, Project
from livemart.refresh import full
from livemart.refresh.context import BatchContext, BatchMemory
from livemart.refresh.full import contract_breaches, full_query, refresh_full, require_contract
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.model_errors import ModelFailedError
from livemart.spark.types import spark_schema
from tests.frames import frame_of
from tests.models import make_model

SQL = (
    "select o.order_id, l.name from raw.orders as o"
    " left join delta.`/data/Labels` as l on o.id = l.id"
    " left join other.`Raw`.Orders as x on o.id = x.id"
)
PROMISED = {"shop_id": "string", "amount": "decimal(10,2)"}


def test_a_table_outside_of_the_warehouse_is_read_as_it_was_written(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    plan = plan_query(SQL, Inputs({"raw.orders": ("order_id", "id")}))
    stored = _stored("model.m.labelled", SQL, plan)

    query = full_query(stored, PinnedInputs(warehouse, {}, {"raw.orders": 2}))

    assert "left join delta.`/data/Labels` as l" in query
    assert "left join other.`Raw`.Orders as x" in query
    assert f"(select * from delta.`{tmp_path}/raw/orders` version as of 2) as o" in query


def _stored(unique_id: str, sql: str, plan: Plan, contract: Sequence[str] = ()) -> StoredQuery:
    columns = tuple(Column(name, None) for name in contract)
    model = make_model(unique_id, compiled_code=sql, columns=columns, is_contracted=bool(contract))
    project = Project("m", ".", "m", {}, {unique_id: model}, {}, {})
    return stored_queries(project, {unique_id: plan})[unique_id]


RANKED = (
    "select shop, amount, cast(row_number() over (order by amount desc) as int) as place"
    " from s.sales"
)
_SALES = pa.schema([("shop", pa.string()), ("amount", pa.int64())])


class _Engine:
    """A session that runs SQL in DuckDB over views of rows, and knows no stored table."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self.catalog = SimpleNamespace(dropTempView=self._connection.unregister)

    def view(self, _: object, name: str, rows: pa.Table) -> None:
        self._connection.register(name, rows)

    def sql(self, text: str) -> SimpleNamespace:
        return self._frame(self._connection.sql(text).to_arrow_table())

    def _frame(self, rows: pa.Table) -> SimpleNamespace:
        return frame_of(
            rows,
            schema=spark_schema(rows.schema),
            limit=lambda count: self._frame(rows.slice(0, count)),
        )


class _Refresh:
    """A full refresh of `m.ranked`: its new rows, and the table before they are committed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
        self.warehouse, self.engine = Warehouse(folder), _Engine()
        self.overwritten: list[str] = []
        for module in ("livemart.spark.arrow_views", "livemart.refresh.views"):
            monkeypatch.setattr(f"{module}.to_view_of", self.engine.view)
        for module in ("livemart.spark.arrow_views", "livemart.refresh.full"):
            monkeypatch.setattr(f"{module}.session_for", lambda session, *_, **__: session)
        monkeypatch.setattr(full, "session_of", lambda spark, _: spark)
        self._fields = {"lane": "auto", **fields}

    def write(self, relation: str, rows: pa.Table) -> None:
        warehouse = self.warehouse
        if not warehouse.exists(relation):
            warehouse.create(relation, rows.schema)
        warehouse.overwrite(relation, rows, Tag(relation, warehouse.version(relation), {}))

    def run(self, sql: str = RANKED, contract: Sequence[str] = ()) -> Commit:
        """Refresh the model, and note a table that Spark replaces."""
        warehouse = self.warehouse
        context = SimpleNamespace(
            spark=self.engine,
            warehouse=warehouse,
            batch_id=7,
            between_batches=BatchMemory(),
            lane_of=lambda _: SimpleNamespace(overwrite=self._overwrite),
            **self._fields,
        )
        inputs = PinnedInputs(warehouse, {}, {"s.sales": warehouse.version("s.sales")})
        return refresh_full(
            cast(BatchContext, context),
            _stored(
                "model.m.ranked",
                sql,
                plan_query(sql, Inputs({"s.sales": tuple(_SALES.names)})),
                contract,
            ),
            inputs,
            Tag("m.ranked/1", 7, {}),
            inputs.newest("m.ranked"),
        )

    def _overwrite(self, relation: str, query: str, *_: object, **__: object) -> Commit:
        self.overwritten.append(query)
        return Commit(9, 1)


def _sales(*amounts: int) -> pa.Table:
    rows = [{"shop": f"s{amount}", "amount": amount} for amount in amounts]
    return pa.Table.from_pylist(rows, _SALES)


def _ranked(*amounts: int, kind: pa.DataType | None = None) -> pa.Table:
    places = pa.array(range(1, len(amounts) + 1), kind or pa.int32())
    rows = _sales(*sorted(amounts, reverse=True))
    # Other letter case, as of a table that was made before an edit.
    return pa.table({"Shop": rows["shop"], "amount": rows["amount"], "place": places})


def test_few_rows_are_recomputed_without_a_read_of_tables_by_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1, 3, 5))
    refresh.write("m.ranked", _ranked(1, 3, 5))
    refresh.write("s.sales", _sales(1, 2, 5))

    commit = refresh.run()

    # DuckDB knows no table of the warehouse: one that is named would have been an error.
    assert refresh.overwritten == []
    assert commit.rows_changed == 2
    stored = refresh.warehouse.read("m.ranked")
    assert Counter(map(str, stored.to_pylist())) == Counter(map(str, _ranked(1, 2, 5).to_pylist()))


def test_a_full_refresh_without_a_difference_commits_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1, 3, 5))
    refresh.write("m.ranked", _ranked(1, 3, 5))
    before = refresh.warehouse.version("m.ranked")

    commit = refresh.run()

    assert commit.rows_changed == 0
    assert refresh.warehouse.version("m.ranked") == before


def test_few_rows_that_become_many_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1, 3, 5))
    refresh.write("m.ranked", _ranked(1, 3))
    monkeypatch.setattr(full, "ROWS_IN_MEMORY", 2)

    refresh.run()

    assert len(refresh.overwritten) == 1


def test_a_table_of_another_type_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1))
    refresh.write("m.ranked", _ranked(1, kind=pa.int64()))

    refresh.run()

    assert len(refresh.overwritten) == 1


@pytest.mark.parametrize(
    ("contract", "stored", "is_replaced"),
    [
        ((), ("place", "Shop", "amount"), True),
        (("place", "shop", "amount"), ("place", "Shop", "amount"), False),
        (("place", "shop", "amount"), ("Shop", "amount", "place"), True),
        # The run is a stamp: query and table are compared without it.
        (("place", "run", "shop", "amount"), ("place", "Shop", "amount"), False),
    ],
)
def test_a_table_has_the_order_of_its_sql_or_of_its_contract(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contract: tuple[str, ...],
    stored: tuple[str, ...],
    is_replaced: bool,
) -> None:
    monkeypatch.setattr(full, "require_contract", lambda *_: None)
    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1, 3))
    refresh.write("m.ranked", _ranked(1, 3).select([*stored]))

    refresh.run(contract=contract)

    assert bool(refresh.overwritten) is is_replaced
    if contract and is_replaced:
        assert refresh.overwritten[0].startswith("select `place`, `shop`, `amount` from (select")


@pytest.mark.parametrize(
    ("sql", "lane", "most"),
    [
        (RANKED, "large", 100_000),
        (RANKED, "auto", 3),
        ("select input_file_name() as file, amount from s.sales", "auto", 100_000),
        ("select _metadata.file_name as file, amount from s.sales", "auto", 100_000),
        ("select shop, rand() as amount from s.sales", "auto", 100_000),
    ],
)
def test_spark_reads_many_rows_the_large_lane_and_sql_that_asks_for_files_or_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, lane: str, most: int
) -> None:
    refresh = _Refresh(tmp_path, monkeypatch, lane=lane)
    refresh.write("s.sales", _sales(1, 3))
    refresh.write("m.ranked", _ranked(1, 3))
    monkeypatch.setattr(full, "FEW_STATEMENT_ROWS", most)
    read: list[str] = []
    monkeypatch.setattr(
        full, "_difference_in_spark", lambda spark, plan, query, *_: read.append(query)
    )

    refresh.run(sql)

    assert [f"`{tmp_path}/s/sales` version as of 1" in query for query in read] == [True]


@pytest.mark.parametrize("code", ["CDF_UNAVAILABLE", "TABLE_NOT_READABLE"])
def test_spark_compares_a_table_with_a_file_that_it_alone_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    def refuse(*_: object) -> pa.Table:
        raise RefreshError(code, "s.sales: shredded", hint="")

    refresh = _Refresh(tmp_path, monkeypatch)
    refresh.write("s.sales", _sales(1, 3))
    refresh.write("m.ranked", _ranked(1, 3))
    monkeypatch.setattr(PinnedTable, "read", refuse)
    read: list[str] = []
    monkeypatch.setattr(
        full, "_difference_in_spark", lambda spark, plan, query, *_: read.append(query)
    )

    refresh.run()

    assert [f"`{tmp_path}/s/sales` version as of 1" in query for query in read] == [True]


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({"amount": "decimal(10,2)", "shop_id": "string"}, []),
        (
            {"amount": "decimal(20,2)", "shop_id": "string"},
            ["amount is decimal(20,2), not decimal(10,2)"],
        ),
        (
            {"amount": "decimal(10,2)", "shop": "string"},
            ["shop (string) is not in it", "shop_id (string) is missing"],
        ),
    ],
)
def test_each_column_that_differs_is_named(actual: dict[str, str], expected: list[str]) -> None:
    assert contract_breaches(PROMISED, actual) == expected


def test_what_spark_says_of_both_is_compared() -> None:
    columns = (Column("`shop_id`", "varchar(10)"), Column("amount", "decimal(10,2)"))
    model = make_model("model.m.totals", is_contracted=True, columns=columns)
    asked: list[str] = []

    def spark(yields: dict[str, str]) -> Any:
        def sql(text: str) -> Any:
            asked.append(text)
            types = yields if text == "query" else PROMISED
            return SimpleNamespace(dtypes=list(types.items()))

        return SimpleNamespace(sql=sql)

    require_contract(spark(PROMISED), model, "query")
    with pytest.raises(ModelFailedError, match=r"models/totals\.sql: .*amount \(decimal") as caught:
        require_contract(spark({"shop_id": "string"}), model, "query")
    require_contract(spark({}), replace(model, is_contracted=False), "query")

    assert "contract" in caught.value.hint
    assert (
        asked[0]
        == "select cast(null as varchar(10)) as `shop_id`, cast(null as decimal(10,2)) as `amount`"
    )
    assert len(asked) == 4
