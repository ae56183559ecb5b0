"""Times the pulls of a consumer of rows: a small one, and those that copy a whole model.

Used by `bench.serve`. The peer asks PostgreSQL for the same rows by plain SQL, and has it write the
JSON as PostgREST does, in tables that the same publisher filled. It has no server in front of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from statistics import median
from typing import Any
from urllib.parse import urlencode

from bench.serving_store import publish_number, restaurant_id
from livemart.store.store import Store
from tests.store.postgres import Postgres, find_binaries, running_postgres

_PAGE = 10_000
_SMALL_PULLS = 500
_DISHES, _TREND = "restaurant_top_dishes", "restaurant_sales_trend"
_DISHES_SQL = """
select coalesce(json_agg(rows), '[]')::text
from (
    select * from {table} where restaurant_id = %s
    order by restaurant_id, window_hours, dish_rank
) rows
"""
_TREND_SQL = """
select coalesce(json_agg(rows), '[]')::text
from (
    select * from {table} where (restaurant_id, pane_started_at) > (%s, %s)
    order by restaurant_id, pane_started_at limit {limit}
) rows
"""


def measure_pulls(address: tuple[str, int], token: str, restaurants: int) -> dict[str, float]:
    """Return the figures of a server: `pull_p50_ms` and `bootstrap_rows_per_s`."""
    headers = {"Authorization": f"Bearer {token}"}
    with closing(HTTPConnection(*address, timeout=60)) as connection:

        def ask(model: str, **asked: Any) -> dict[str, Any]:
            path = f"/v1/models/{model}?{urlencode(asked)}"
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body: dict[str, Any] = json.loads(answer.read())
            if answer.status != 200:
                raise RuntimeError(f"{path}: {body}")
            return body

        def pull(restaurant: str) -> int:
            return len(ask(_DISHES, restaurant_id=f"eq.{restaurant}")["rows"])

        def pages() -> Iterator[int]:
            after: dict[str, str] = {}
            while True:
                body = ask(_TREND, moving="true", limit=_PAGE, **after)
                yield len(body["rows"])
                if body["next"] is None:
                    return
                after = {"after": body["next"]}

        return _figures(pull, pages, restaurants)


def measure_peer(restaurants: int) -> dict[str, float] | None:
    """Return the same figures of plain SQL; None if PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        return None
    with running_postgres(binaries) as server, _filled(server, restaurants) as tables:
        # On one core, as the server.
        os.sched_setaffinity(server.process_id, sorted(os.sched_getaffinity(0))[:1])
        with server.connect() as connection:

            def ask(query: str, *values: object) -> list[dict[str, Any]]:
                row = connection.execute(query, values, prepare=True).fetchone()
                assert row is not None
                rows: list[dict[str, Any]] = json.loads(row[0])
                return rows

            def pull(restaurant: str) -> int:
                return len(ask(_DISHES_SQL.format(table=tables[_DISHES]), restaurant))

            def pages() -> Iterator[int]:
                place: tuple[str, str] = ("", "-infinity")
                query = _TREND_SQL.format(table=tables[_TREND], limit=_PAGE)
                while rows := ask(query, *place):
                    yield len(rows)
                    place = rows[-1]["restaurant_id"], rows[-1]["pane_started_at"]

            return _figures(pull, pages, restaurants)


def _figures(
    pull: Callable[[str], int], pages: Callable[[], Iterator[int]], restaurants: int
) -> dict[str, float]:
    took = []
    for number in range(_SMALL_PULLS):
        began = time.perf_counter()
        count = pull(restaurant_id(number % restaurants))
        took.append(time.perf_counter() - began)
        if count != 9:
            raise RuntimeError(f"{count} dishes of a restaurant, instead of 9")
    rates, counts = [], set()
    for _ in range(3):
        began = time.perf_counter()
        counts.add(sum(pages()))
        rates.append(max(counts) / (time.perf_counter() - began))
    if len(counts) != 1:
        raise RuntimeError(f"copies of one model have {counts} rows")
    return {"pull_p50_ms": median(took) * 1_000, "bootstrap_rows_per_s": median(rates)}


@contextmanager
def _filled(server: Postgres, restaurants: int) -> Iterator[dict[str, str]]:
    """Fill a store as the server's; yield the table of each model."""
    url = server.new_store()
    store = Store.open(url)
    try:
        publish_number(store, restaurants, 1)
        with store.begin() as connection:
            schema: str = connection.exec_driver_sql("select current_schema()").scalar_one()
            connection.exec_driver_sql("analyze")
    finally:
        store.close()
    yield {name: f"{schema}.served_{name}" for name in (_DISHES, _TREND)}
