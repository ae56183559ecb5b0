"""The pages of a walk are the rows of one snapshot, each once, for the caller and query alone."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from livemart.serve.models.written_rows import MOST_BYTES
from tests.serve.apps import Site, make_settings, server, site
from tests.serve.auth.tenant_cases import ARROW, CSV
from tests.serve.live.events import open_stream
from tests.serve.live.push_world import KEY, World, apply, until_mark
from tests.store.stores import fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S

DISHES = "/v1/models/restaurant_top_dishes"


def walk(one: Site, path: str, headers: dict[str, str], query: str = "") -> list[Any]:
    """Return all rows of a query, page by page."""
    rows: list[Any] = []
    after = ""
    while True:
        answer = one.client.get(f"{path}?{query}{after}", headers=headers)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        rows += body["rows"]
        assert body["is_truncated"] == (body["next"] is not None)
        assert answer.headers.get("livemart-next") == body["next"]
        if body["next"] is None:
            return rows
        after = f"&after={body['next']}"


# 0.6 s.
def test_a_walk_has_the_rows_of_one_answer_and_its_cursor_is_of_this_walk(tmp_path: Path) -> None:
    with site(tmp_path, tenant_column="restaurant_id") as one:
        bag = pa.table({"restaurant_id": ["r1", "r2", "r1", "r1", "r1"], "n": [1, 2, 1, 1, None]})
        fill_store(one.url, {**reference_tables(), "bag": bag})
        one.until(lambda: one.shows(1))
        admin, own, other = one.bearer(), one.bearer("r1"), one.bearer("r2")
        queries = ("", "order=sales_amount.desc&", "window_hours=in.(1,24)&order=dish_name&")
        for headers in (admin, own):
            for query in (*queries, "select=dish_id&order=quantity_sold&"):
                whole = one.client.get(f"{DISHES}?{query}", headers=headers).json()["rows"]
                assert walk(one, DISHES, headers, f"{query}limit=2&") == whole
            for query in ("", "order=n.desc&"):
                whole = one.client.get(f"/v1/models/bag?{query}", headers=headers).json()["rows"]
                assert walk(one, "/v1/models/bag", headers, f"{query}limit=2&") == whole
                assert len(whole) == (5 if headers is admin else 4)

        def ask(query: str, headers: dict[str, str]) -> Any:
            return one.client.get(f"{DISHES}?{query}", headers=headers)

        first = ask("limit=2", own)
        cursor = first.headers["livemart-next"]
        for form in (CSV, ARROW):
            assert ask("limit=2", own | {"Accept": form}).headers["livemart-next"] == cursor
        assert ask(f"limit=3&select=dish_id&after={cursor}", own).status_code == 200
        refused = [
            ask(f"after={cursor}", other),
            ask(f"after={cursor}", admin),
            ask(f"after={cursor}&order=dish_id", own),
            ask(f"after={cursor}&window_hours=eq.24", own),
            ask(f"after={cursor[:-2]}", own),
            ask("after=", own),
            ask(f"after={first.headers['livemart-changes-after']}", own),
        ]
    assert [(each.status_code, each.json()["code"]) for each in refused] == [
        (400, "POSITION_REFUSED")
    ] * len(refused)


# 0.6 s.
def test_a_walk_ends_with_410_when_own_rows_have_changed_and_only_then(tmp_path: Path) -> None:
    orders = make_orders(a_day=6)
    with site(tmp_path) as one:
        fill_store(one.url, reference_tables(orders), snapshot_id=1)
        one.until(lambda: one.shows(1))
        own, other = one.bearer("r1"), one.bearer("r2")
        cursors = {
            name: one.client.get(f"{DISHES}?limit=1", headers=headers).json()["next"]
            for name, headers in (("own", own), ("other", other))
        }

        def go_on() -> list[Any]:
            return [
                one.client.get(f"{DISHES}?limit=1&after={cursors[name]}", headers=headers)
                for name, headers in (("own", own), ("other", other))
            ]

        # A snapshot that changes nothing; one that changes rows of r2; one of another history.
        fill_store(one.url, reference_tables(orders), snapshot_id=2)
        one.until(lambda: one.shows(2))
        unchanged = go_on()
        fewer = [order for order in orders if order.restaurant_id != "r2"]
        fill_store(one.url, reference_tables(fewer), snapshot_id=3)
        one.until(lambda: one.shows(3))
        changed = go_on()
        fill_store(one.url, reference_tables(orders), snapshot_id=1, epoch="another", is_start=True)
        one.until(lambda: one.shows(1))
        filled_again = go_on()

    assert [each.status_code for each in unchanged] == [200, 200]
    assert [each.status_code for each in changed] == [200, 410]
    assert [each.status_code for each in filled_again] == [410, 410]
    assert changed[1].json()["code"] == "SNAPSHOT_GONE"
    assert "begin again without after" in changed[1].json()["detail"]


# 1.5 s.
def test_a_table_larger_than_a_page_is_read_as_arrow_whole_in_order_and_of_one_snapshot(
    tmp_path: Path,
) -> None:
    """The first page ends with its bytes, and the second one with the rows."""
    count = 3_000
    wide = pa.table({"n": range(count), "text": [f"{n:07000}" for n in range(count)]})
    fill_store(str(make_settings(tmp_path).store_url), {"wide": wide}, {"wide": ("n",)})
    pages, positions, after = list[pa.Table](), set[str](), ""
    with (
        server(tmp_path) as (host, port),
        httpx2.Client(base_url=f"http://{host}:{port}", timeout=PATIENCE_S) as client,
    ):
        while True:
            path = f"/v1/models/wide?limit=10000&order=n.desc{after}"
            page = client.get(path, headers={"Accept": ARROW})
            pages.append(pa.ipc.open_stream(page.content).read_all())
            positions.add(page.headers["livemart-changes-after"])
            is_last = page.headers["livemart-truncated"] == "false"
            assert len(page.content) < MOST_BYTES + 4_000_000
            # Each is whole by itself, and says so.
            assert pages[-1].schema.metadata[b"snapshot_id"] == b"1"
            assert pages[-1].schema.metadata[b"is_truncated"] == str(not is_last).encode()
            if is_last:
                break
            after = f"&after={page.headers['livemart-next']}"

    assert len(pages) == 2 and len(positions) == 1
    found = pa.concat_tables([page.replace_schema_metadata() for page in pages])
    assert found.equals(wide.sort_by([("n", "descending")]).cast(found.schema))


# 1 s.
def test_a_walk_and_the_stream_from_its_position_are_the_whole_without_gap_or_overlap(
    world: World,
) -> None:
    host, port = world.address
    path = "/v1/models/restaurant_top_dishes"
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    with httpx2.Client(base_url=f"http://{host}:{port}", timeout=PATIENCE_S) as client:
        first = client.get(f"{path}?limit=4")
        world.publish("r1", "r2", "r3")
        gone = client.get(f"{path}?limit=4&after={first.json()['next']}")
        after: str | None = ""
        positions = set()
        while after is not None:
            page = client.get(f"{path}?limit=4{after and f'&after={after}'}")
            positions.add(page.headers["livemart-changes-after"])
            for row in page.json()["rows"]:
                assert rows.setdefault(tuple(row[name] for name in KEY), row) is row
            after = page.json()["next"]
    for restaurant in ("r1", "r3"):
        world.publish(restaurant)

    async def follow() -> None:
        async with open_stream(world.address, f"{path}/stream?after={positions.pop()}") as stream:
            for event in await until_mark(stream, 4):
                assert event.kind != "reset"
                apply(rows, event)

    assert (gone.status_code, len(positions)) == (410, 1)
    asyncio.run(follow())
    expected = world.rows("restaurant_top_dishes")
    assert len(expected) > 8 and rows == {tuple(row[n] for n in KEY): row for row in expected}


# 1 s for each order.
@pytest.mark.parametrize("order", ["", "order=n.desc&", "order=n,name&n=is.not_null&"])
def test_a_moving_walk_and_the_changes_since_are_the_rows_of_one_snapshot(
    tmp_path: Path, order: str
) -> None:
    """Between any two pages rows come, go, and move before and behind the place of the walk."""
    chance, url = random.Random(order), str(make_settings(tmp_path).store_url)
    stock: dict[int, tuple[str, int | None]] = {
        key: (f"row {key}", chance.choice([None, 1, 2, 3, 4])) for key in range(0, 60, 2)
    }

    def publish(snapshot_id: int) -> None:
        for key in chance.sample(range(60), 8):
            if chance.random() < 0.3:
                stock.pop(key, None)
            else:
                stock[key] = (f"row {key}", chance.choice([None, 1, 2, 3, 4]))
        table = {
            "id": list(stock),
            "name": [name for name, _ in stock.values()],
            "n": pa.array([n for _, n in stock.values()], pa.int64()),
        }
        fill_store(url, {"stock": pa.table(table)}, {"stock": ("id",)}, snapshot_id)

    rows: dict[int, dict[str, Any]] = {}
    publish(1)
    with (
        server(tmp_path) as (host, port),
        httpx2.Client(base_url=f"http://{host}:{port}", timeout=PATIENCE_S) as client,
    ):
        positions, snapshots = set(), list[int]()
        after: str | None = ""
        while after is not None:
            found = client.get(f"/v1/models/stock?moving=true&limit=7&{order}{after}")
            body = found.json()
            positions.add(found.headers["livemart-changes-after"])
            snapshots.append(body["snapshot_id"])
            rows |= {row["id"]: row for row in body["rows"]}
            after = body["next"] and f"after={body['next']}"
            publish(len(snapshots) + 1)

        async def follow() -> None:
            path = f"/v1/models/stock/stream?after={next(iter(positions))}"
            async with open_stream((host, port), path) as stream:
                for event in await until_mark(stream, len(snapshots) + 1):
                    row = event.data.get("row")
                    assert event.kind in ("change", "snapshot")
                    if event.kind == "change":
                        rows.pop(row["id"], None)
                        if event.data["op"] != "delete":
                            rows[row["id"]] = row

        asyncio.run(follow())
        whole = client.get("/v1/models/stock").json()["rows"]

    # The reader has no rows that a filter leaves out, but those that changed since.
    if "is.not_null" in order:
        rows = {key: row for key, row in rows.items() if row["n"] is not None}
        whole = [row for row in whole if row["n"] is not None]
    assert len(positions) == 1 and snapshots == sorted(snapshots) and len(set(snapshots)) > 3
    assert rows == {row["id"]: row for row in whole} and len(rows) > 20


# 0.5 s.
def test_a_moving_walk_needs_a_key_and_the_changes_since_its_first_page(tmp_path: Path) -> None:
    def fill(number: int, **how: Any) -> None:
        tables = {name: pa.table({"id": range(number, number + 9)}) for name in ("keyed", "bag")}
        fill_store(one.url, tables, {"keyed": ("id",)}, number, **how)
        one.until(lambda: one.shows(number))

    def ask(query: str, model: str = "keyed") -> Any:
        return one.client.get(f"/v1/models/{model}?limit=2&{query}")

    with site(tmp_path) as one:
        fill(1)
        bag = ask("moving=true", "bag")
        walks = {query: ask(query).json()["next"] for query in ("moving=true", "moving=false")}
        fill(2)
        moved = ask(f"moving=true&after={walks['moving=true']}")
        gone = ask(f"moving=false&after={walks['moving=false']}")
        mixed = ask(f"after={walks['moving=true']}")
        fill(1, epoch="another", is_start=True)
        lost = ask(f"moving=true&after={moved.json()['next']}")

    assert (bag.status_code, bag.json()["code"]) == (422, "PARAMETER_WRONG")
    assert "has no key" in bag.json()["detail"]
    assert [row["id"] for row in moved.json()["rows"]] == [3, 4]
    assert [each.status_code for each in (moved, gone, mixed, lost)] == [200, 410, 400, 410]
    assert lost.json()["code"] == "SNAPSHOT_GONE"
