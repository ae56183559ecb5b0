"""Each strategy in both lanes: the changed rows that it gives are those of a recomputation.

DuckDB runs the SQL in Spark's place; how Spark and Delta carry it out is for the equivalence suite.
15 s.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.sum_limits import SumLimits
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.spelling import spelled
from livemart.refresh import strategy
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.model_run import ModelRun
from livemart.refresh.views import BatchViews, SharedViews
from livemart.spark.arrow_views import rows_of
from tests.frames import frame_of

_START = datetime(2026, 3, 1, tzinfo=UTC)
_MODEL = "m.model"
SALES = pa.schema(
    [
        ("id", pa.int64()),
        ("Shop", pa.string()),
        ("amount", pa.int64()),
        ("sold_at", pa.timestamp("us", tz="UTC")),
    ]
)
SHOPS = pa.schema([("shop", pa.string()), ("city", pa.string())])
_INPUTS = Inputs(
    {"s.sales": tuple(SALES.names), "s.shops": tuple(SHOPS.names)},
    {"s.sales": (("id",),), "s.shops": (("shop",),)},
)
_HOUR = (
    "over (partition by shop order by sold_at"
    " range between interval 1 hour preceding and current row)"
)
MODELS = {
    "signed groups": "select shop, count(*) as n, sum(amount) as total from s.sales group by 1",
    "signed rows": "select s.id, s.amount, p.city from s.sales as s"
    " left join s.shops as p on s.shop = p.shop",
    "keys": "select shop, max(amount) as most from s.sales group by 1",
    "keys of a join": "select p.city, max(s.amount) as most from s.sales as s"
    " join s.shops as p on s.shop = p.shop group by 1",
    "intervals": f"select id, shop, sold_at, max(amount) {_HOUR} as most from s.sales",
    "running totals": f"select id, shop, sold_at, sum(amount) {_HOUR} as total from s.sales",
}


def _sale(number: int, shop: str, amount: int) -> dict[str, Any]:
    at = _START + timedelta(minutes=17 * number)
    return {"id": number, "Shop": shop, "amount": amount, "sold_at": at}


OLD = [_sale(number, "abc"[number % 3], number % 7) for number in range(30)]
# One is gone, one has another shop, one is new.
NEW = [*OLD[1:20], _sale(20, "b", 6), *OLD[21:], _sale(31, "d", 9)]
CITIES = [{"shop": shop, "city": city} for shop, city in zip("abc", "xyx", strict=True)]
OTHER_CITIES = [*CITIES[:2], {"shop": "c", "city": "y"}, {"shop": "d", "city": "z"}]


class _Engine:
    """A session that runs Spark's SQL in DuckDB, over views of rows."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set timezone = 'UTC'")
        self.catalog = SimpleNamespace(dropTempView=self._connection.unregister)

    def view(self, _: object, name: str, rows: pa.Table) -> None:
        self._connection.register(name, rows)

    def stored(self, warehouse: Warehouse, relation: str, version: int) -> str:
        """Return the name of a table at a version, as `Warehouse.sql_at` does."""
        name = f"{relation.replace('.', '_')}_at_{version}"
        self.view(None, name, warehouse.read(relation, version))
        return name

    def sql(self, text: str) -> SimpleNamespace:
        (query,) = sqlglot.transpile(text, read="spark", write="duckdb")
        return frame_of(self._connection.sql(query).to_arrow_table())


class _Exact(dict[object, Any]):
    """Limits of sums: whatever is asked for, none is ever reached."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: object) -> dict[str, SumLimits]:
        return {"total": SumLimits(2**62)}


def _write(warehouse: Warehouse, relation: str, rows: pa.Table) -> None:
    if not warehouse.exists(relation):
        warehouse.create(relation, rows.schema)
    warehouse.overwrite(relation, rows, Tag(relation, warehouse.version(relation), {}))


def _computed(sql: str, sales: list[dict[str, Any]], shops: list[dict[str, str]]) -> pa.Table:
    engine = _Engine()
    engine.view(None, "sales", pa.Table.from_pylist(sales, SALES))
    engine.view(None, "shops", pa.Table.from_pylist(shops, SHOPS))
    frame: Any = engine.sql(sql.replace("s.sales", "sales").replace("s.shops", "shops"))
    rows = rows_of(frame)
    names = rows.schema.names
    kinds = [
        pa.int64() if name in ("n", "total") else rows.schema.field(name).type for name in names
    ]
    return rows.cast(pa.schema(list(zip(names, kinds, strict=True))))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("lane", "sales", "shops"),
    [
        ("small", NEW, CITIES),
        ("small", OLD, OTHER_CITIES),
        ("small", NEW, OTHER_CITIES),
        ("large", NEW, OTHER_CITIES),
    ],
)
def test_changed_rows_make_the_stored_ones_those_of_a_recomputation(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    lane: str,
    sales: list[dict[str, Any]],
    shops: list[dict[str, str]],
) -> None:
    warehouse = Warehouse(tmp_path)
    engine: Any = _Engine()
    for module in ("livemart.spark.arrow_views", "livemart.refresh.views"):
        monkeypatch.setattr(f"{module}.to_view_of", engine.view)
    monkeypatch.setattr("livemart.spark.arrow_views.session_for", lambda session, *_, **__: session)
    plan = plan_query(MODELS[name], _INPUTS)
    before, after = _computed(MODELS[name], OLD, CITIES), _computed(MODELS[name], sales, shops)
    _write(warehouse, "s.sales", pa.Table.from_pylist(OLD, SALES))
    _write(warehouse, "s.shops", pa.Table.from_pylist(CITIES, SHOPS))
    _write(warehouse, _MODEL, before)
    old = {it: warehouse.version(it) for it in ("s.sales", "s.shops", _MODEL)}
    _write(warehouse, "s.sales", pa.Table.from_pylist(sales, SALES))
    _write(warehouse, "s.shops", pa.Table.from_pylist(shops, SHOPS))
    monkeypatch.setattr(Warehouse, "sql_at", lambda *asked: engine.stored(*asked))
    inputs = PinnedInputs(warehouse, old, {it: warehouse.version(it) for it in old})

    change, taken = strategy.changed_rows(
        _run(warehouse, plan, inputs, engine, is_large=lane == "large")
    )

    rows = Counter(map(_key, before.to_pylist()))
    for row in [] if change is None else change.to_pylist():
        counts = row.pop(OLD_COUNT), row.pop(NEW_COUNT)
        assert rows[_key(row)] == counts[0]
        rows[_key(row)] = counts[1]
    assert +rows == Counter(map(_key, after.to_pylist()))
    assert taken == plan.strategy.name == ("signed" if "signed" in name else "region")


def _run(
    warehouse: Warehouse, plan: Plan, inputs: PinnedInputs, engine: Any, *, is_large: bool
) -> ModelRun:
    views = BatchViews(engine, "__model_1", SharedViews(), is_large=is_large)
    stored, read = inputs.resolve(plan, _MODEL)
    plan = spelled(plan, stored.names.__getitem__)
    return ModelRun(plan, stored, read, views, _Exact())


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in sorted(row))
