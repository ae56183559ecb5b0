"""The stream of a model over a real socket: no change is missed or repeated."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pyarrow as pa
import pytest
from starlette.requests import Request

from livemart.serve.auth.callers import Caller
from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.problems import ProblemError
from livemart.serve.live.hub import Hub
from livemart.serve.live.readings import Readings
from livemart.serve.live.shelf import Answer
from livemart.serve.models import written_changes
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.stream import read_page
from livemart.serve.models.written_changes import Followed, Page
from livemart.serve.shares.shares import Shares, owner_of
from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition
from livemart.store.reader import StoreReader
from livemart.store.served import ChangePage
from livemart.store.snapshot_view import SnapshotView
from tests.serve.apps import bearer, make_settings, server
from tests.serve.live.events import Event, open_stream
from tests.serve.live.push_world import DISHES, KEY, World, apply, number_of, until_mark
from tests.serve.owner.order_versions import KEYS, START, orders
from tests.store.stores import NOON, fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S

ALL, OF_R1, OF_R2 = Caller(None), Caller(frozenset({"r1"})), Caller(frozenset({"r2"}))


def test_a_change_stream_begins_with_all_rows_and_follows_them(world: World) -> None:
    async def watch() -> dict[tuple[Any, ...], dict[str, Any]]:
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        async with open_stream(world.address, f"{DISHES}?after=0") as stream:
            for event in await until_mark(stream, 1):
                apply(rows, event)
            for number in range(2, 8):
                await asyncio.to_thread(world.publish, f"r{number % 3 + 1}")
                for event in await until_mark(stream, number):
                    assert event.kind != "reset"
                    apply(rows, event)
        return rows

    rows = asyncio.run(watch())

    assert rows == {tuple(row[n] for n in KEY): row for row in world.rows("restaurant_top_dishes")}


def changes_in(events: list[Event]) -> list[Any]:
    return [event.data for event in events if event.kind == "change"]


WHERE = "dish_rank=lte.2&sales_amount=gte.20.00"


def test_a_stream_with_conditions_is_of_the_rows_that_fulfil_them(world: World) -> None:
    """A copy that follows it is what a pull with the same conditions answers.

    Rows that pass from the one side to the other are inserts and deletes, and it goes on behind any
    of its events.
    """
    text, _ = (tokens := world.tokens()).create("r1 and r2", tenants=["r1", "r2"])
    tokens.close()
    headers = bearer(text)

    async def watch() -> tuple[dict[tuple[Any, ...], dict[str, Any]], list[Event]]:
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        seen = list[Event]()
        async with open_stream(world.address, f"{DISHES}?after=0&{WHERE}", headers) as stream:
            for number in range(1, 8):
                if number > 1:
                    await asyncio.to_thread(world.publish, f"r{number % 3 + 1}", "r1")
                seen += await until_mark(stream, number)
        for event in seen:
            apply(rows, event)
        for index in range(0, len(seen), 3):
            if seen[index].event_id is None or seen[index].kind != "change":
                continue
            has = {**headers, "Last-Event-ID": str(seen[index].event_id)}
            async with open_stream(world.address, f"{DISHES}?{WHERE}", has) as stream:
                rest = await until_mark(stream, 7)
            assert changes_in(rest) == changes_in(seen[index + 1 :])
        return rows, seen

    rows, seen = asyncio.run(watch())
    host, port = world.address
    path = f"http://{host}:{port}/v1/models/restaurant_top_dishes?{WHERE}"
    pulled = httpx2.get(path, headers=headers, timeout=PATIENCE_S).json()["rows"]

    assert rows == {tuple(row[n] for n in KEY): row for row in pulled} and len(rows) > 4
    ops = {event.data["op"] for event in seen if event.kind == "change" and event.event_id}
    assert ops == {"insert", "update", "delete"}
    (head,) = [event.data for event in seen if event.kind == "reset"]
    assert head["row_count"] == sum(not event.event_id for event in seen) - 1


def test_conditions_of_a_stream_are_refused_as_those_of_a_pull(world: World) -> None:
    refused = {
        "dish_ranks=eq.1": (400, "PARAMETER_UNKNOWN"),
        "dish_rank=eq.x": (422, "PARAMETER_WRONG"),
        "dish_rank=1": (422, "PARAMETER_WRONG"),
        "after=0&after=0": (400, "PARAMETER_REPEATED"),
        # A stream has no such parameter.
        "select=dish_rank": (400, "PARAMETER_UNKNOWN"),
        "&".join(["dish_rank=gte.1"] * 51): (422, "PARAMETER_WRONG"),
    }

    async def ask(query: str) -> tuple[int, str]:
        async with open_stream(world.address, f"{DISHES}?{query}") as stream:
            return stream.status, json.loads(stream.body)["code"]

    assert {query: asyncio.run(ask(query)) for query in refused} == refused


def test_without_a_position_changes_are_told_from_now_on(world: World) -> None:
    async def watch() -> list[Event]:
        async with open_stream(world.address, DISHES) as stream:
            first = await stream.next()
            assert first is not None
            await asyncio.to_thread(world.publish, "r2")
            return [first, *await until_mark(stream, 2)]

    mark, *events = asyncio.run(watch())

    assert (mark.kind, number_of(mark)) == ("snapshot", 1)
    assert {event.data["row"]["restaurant_id"] for event in events[:-1]} == {"r2"}
    assert events[-1].data["as_of"] == "2026-03-02T12:00:02Z"


def ids(folder: Path) -> EventIds:
    """Return the ids that the server over the warehouse in `folder` gives to an admin."""
    return EventIds(Seal(SigningKey.of(make_settings(folder))), "restaurant_top_dishes", None)


async def first_id(world: World) -> str:
    """Return the id of the newest snapshot in the changes of a model."""
    async with open_stream(world.address, DISHES) as stream:
        event = await stream.next()
        assert event is not None and event.event_id is not None
        return event.event_id


def test_a_stream_goes_on_behind_any_event(world: World) -> None:
    """Break off after each event in turn: together the two parts are the whole."""
    after_first = asyncio.run(first_id(world))
    for number in range(2, 5):
        world.publish("r1", "r2", "r3")
        assert number == world.snapshot_id

    async def read(position: str) -> list[Event]:
        headers = {"Last-Event-ID": position}
        async with open_stream(world.address, DISHES, headers) as stream:
            return await until_mark(stream, 4)

    whole = asyncio.run(read(after_first))
    changes = [event for event in whole if event.kind == "change"]
    assert {event.data["snapshot_id"] for event in changes} == {2, 3, 4}
    assert len({event.event_id for event in changes}) == len(changes)

    for index, event in enumerate(changes):
        rest = asyncio.run(read(str(event.event_id)))

        assert [each.data for each in rest] == [each.data for each in whole[index + 1 :]]


def test_who_has_all_gets_nothing_twice(world: World) -> None:
    async def watch() -> Event | None:
        has = {"Last-Event-ID": await first_id(world)}
        await world.until_streams(0)
        async with open_stream(world.address, DISHES, has) as stream:
            await world.until_streams(1)
            await asyncio.to_thread(world.publish)
            return await stream.next()

    event = asyncio.run(watch())

    assert event is not None
    assert (event.kind, number_of(event)) == ("snapshot", 2)


@pytest.mark.parametrize(
    "position", [Position(1, "0000abcd"), Position(0, "0000abcd", 1, 3), Position(99, "0000abcd")]
)
def test_a_position_that_is_not_kept_begins_anew(
    tmp_path: Path, world: World, position: Position
) -> None:
    event_id = ids(tmp_path).write(position)

    async def watch() -> list[Event]:
        async with open_stream(world.address, DISHES, {"Last-Event-ID": event_id}) as stream:
            return await until_mark(stream, 1)

    first, *rows, mark = asyncio.run(watch())

    assert (first.kind, first.event_id) == ("reset", None)
    assert first.data["row_count"] == len(rows) == len(world.rows("restaurant_top_dishes"))
    assert {(event.event_id, event.data["op"]) for event in rows} == {(None, "insert")}
    assert number_of(mark) == 1


@pytest.mark.parametrize("scope", ["forged", "another model's", "another tenant's"])
def test_an_id_that_was_not_sent_for_this_stream_is_refused(
    tmp_path: Path, world: World, scope: str
) -> None:
    found = asyncio.run(first_id(world))
    position = ids(tmp_path).read(found)
    text = {
        "forged": found[:20] + ("A" if found[20] != "A" else "B") + found[21:],
        "another model's": replace(ids(tmp_path), model="order_arrivals").write(position),
        "another tenant's": replace(ids(tmp_path), tenants=frozenset({"r1"})).write(position),
    }[scope]

    async def ask(path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        async with open_stream(world.address, path, headers) as stream:
            return stream.status, stream.body

    for path, headers in ((DISHES, {"Last-Event-ID": text}), (f"{DISHES}?after={text}", {})):
        status, body = asyncio.run(ask(path, headers))
        assert (status, json.loads(body)["code"]) == (400, "POSITION_REFUSED")


def test_a_stream_goes_on_behind_an_event_of_a_server_that_has_ended(tmp_path: Path) -> None:
    with server(tmp_path) as address:
        world = World(tmp_path, address)
        world.publish()
        has = asyncio.run(first_id(world))
    world.publish("r2")

    async def watch() -> list[Event]:
        async with open_stream(again.address, f"{DISHES}?after={has}") as stream:
            return await until_mark(stream, 2)

    with server(tmp_path) as address:
        again = World(tmp_path, address)
        events = asyncio.run(watch())

    assert [event.kind for event in events] == ["change"] * (len(events) - 1) + ["snapshot"]
    assert {event.data["row"]["restaurant_id"] for event in events[:-1]} == {"r2"}


def test_a_model_that_is_too_large_is_not_sent_whole_but_followed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.serve.models.stream.MOST_RESET", 5)

    async def ask(path: str) -> tuple[int, bytes, Event | None]:
        async with open_stream(world.address, path) as stream:
            return stream.status, stream.body, await stream.next() if stream.status == 200 else None

    status, body, _ = asyncio.run(ask(f"{DISHES}?after=0"))
    followed, _, mark = asyncio.run(ask(DISHES))

    assert mark is not None and mark.event_id is not None
    assert (status, b"MODEL_TOO_LARGE" in body) == (422, True)
    assert f"follow with after={mark.event_id}".encode() in body
    assert (followed, number_of(mark)) == (200, 1)


def test_rows_of_others_are_in_no_stream(world: World) -> None:
    tokens = world.tokens()
    text, _ = tokens.create("r2", tenants=["r2"])
    tokens.close()

    async def watch() -> list[Event]:
        path = f"{DISHES}?after=0"
        async with open_stream(world.address, path, bearer(text)) as stream:
            found = await until_mark(stream, 1)
            await asyncio.to_thread(world.publish, "r1", "r2", "r3")
            return found + await until_mark(stream, 2)

    events = asyncio.run(watch())

    rows = [event.data["row"] for event in events if event.kind == "change"]
    assert {row["restaurant_id"] for row in rows} == {"r2"}
    shown = str([event.without_sealed_id() for event in events])
    assert "r1" not in shown and "r3" not in shown
    assert events[0].data["row_count"] == len(
        [event for event in events if event.kind == "change" and event.data["snapshot_id"] == 1]
    )


def test_changes_of_one_snapshot_are_sent_in_pieces_and_resumed_in_any(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_changes, "SLICE", 2)
    has = asyncio.run(first_id(world))
    world.publish("r1", "r2", "r3")
    sizes = []

    async def read(position: str) -> list[Event]:
        async with open_stream(world.address, DISHES, {"Last-Event-ID": position}) as stream:
            return await until_mark(stream, 2)

    whole = asyncio.run(read(has))
    for index, event in enumerate(whole[:-1]):
        rest = asyncio.run(read(str(event.event_id)))
        assert [each.data for each in rest] == [each.data for each in whole[index + 1 :]]
        sizes.append(len(rest))

    assert len(whole) > 4 and sizes[-1] == 1


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_a_store_that_is_filled_anew_begins_anew(world: World, number: int, is_open: bool) -> None:
    """With other rows, and its ids may be the same; the next of them may follow by net changes."""
    others = make_orders(a_day=4, seed=11)

    def fill_anew() -> None:
        tables = reference_tables(others)
        fill_store(world.url, tables, snapshot_id=number, epoch="another", is_start=True)

    async def watch() -> tuple[list[Event], list[Event]]:
        async with open_stream(world.address, f"{DISHES}?after=0") as stream:
            before = await until_mark(stream, 1)
            if is_open:
                await asyncio.to_thread(fill_anew)
                return before, await until_mark(stream, number)
        await asyncio.to_thread(fill_anew)
        await asyncio.to_thread(world.until_shown, "another")
        has = {"Last-Event-ID": str(before[-1].event_id)}
        async with open_stream(world.address, DISHES, has) as stream:
            return before, await until_mark(stream, number)

    before, after = asyncio.run(watch())
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in before + after:
        apply(rows, event)

    assert (after[0].kind == "reset") == (number == 1)
    assert after[-1].data["epoch"] == "another"
    assert rows == {tuple(row[n] for n in KEY): row for row in world.rows("restaurant_top_dishes")}


def test_a_mended_model_is_told_anew_at_the_same_snapshot(world: World) -> None:
    tables = reference_tables(world.orders)

    async def watch() -> list[Event]:
        async with open_stream(world.address, DISHES) as stream:
            assert await stream.next() is not None
            changed = {"restaurant_top_dishes": "another"}
            await asyncio.to_thread(
                fill_store, world.url, tables, as_of=NOON, fingerprints=changed, is_start=True
            )
            return await until_mark(stream, 1)

    first, *_, last = asyncio.run(watch())

    assert (first.kind, number_of(last)) == ("reset", 1)


@dataclass
class Desk:
    """A store with orders of two restaurants, and how often its changes were asked for."""

    url: str
    request: Request
    questions: int = 0

    def publish(self, number: int, *counts: int) -> None:
        """Publish a snapshot with so many orders of each restaurant, all of them changed."""
        tables = [
            orders(*[number] * count, tenant=f"r{n}") for n, count in enumerate(counts, start=1)
        ]
        whole = pa.concat_tables(tables)
        ids = pa.array(range(1, len(whole) + 1), pa.int64())
        fill_store(self.url, {"orders": whole.set_column(0, "order_id", ids)}, KEYS, number, START)

    def read(self, *asked: tuple[Caller, Position], model: str = "orders") -> list[Page | None]:
        """Return what callers get who ask at the same time."""

        async def ask() -> list[Page | None]:
            return await asyncio.gather(
                *(
                    read_page(self.request, caller, self.followed(caller, model), position)
                    for caller, position in asked
                )
            )

        return asyncio.run(ask())

    def followed(self, caller: Caller, model: str = "orders") -> Followed:
        return Followed(EventIds(self.request.app.state.parts[Seal], model, caller.tenants))

    def page(self, caller: Caller, position: Position) -> Page:
        (page,) = self.read((caller, position))
        assert page is not None
        return page


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    url = f"sqlite:///{tmp_path}/serving.db"
    with closing(StoreReader.open(url)) as reader:
        readings = Readings(
            reader, cast(Hub, SimpleNamespace(away=None, note_newer=lambda _: None))
        )
        shares = Shares(make_settings(tmp_path), Measurements())
        seal = Seal(SigningKey("k" * 32))
        parts = {StoreReader: reader, Readings: readings, Shares: shares, Seal: seal}
        app = SimpleNamespace(state=SimpleNamespace(parts=parts))
        opened = Desk(url, cast(Request, SimpleNamespace(app=app, client=None)))

        found = SnapshotView.changes

        def count(*arguments: Any, **named: Any) -> ChangePage:
            opened.questions += 1
            return found(*arguments, **named)

        monkeypatch.setattr(SnapshotView, "changes", count)
        yield opened
        readings.close()


def events(slices: Any) -> list[tuple[str | None, dict[str, Any]]]:
    """Return id and data of the events in some pieces."""
    shown = []
    for event in b"".join(slices).decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in event.splitlines())
        shown.append((fields.get("id"), json.loads(fields["data"])))
    return shown


# 0.2 s.
def test_callers_who_may_see_the_same_share_a_page_and_no_others(desk: Desk) -> None:
    desk.publish(1, 2, 1)
    desk.publish(2, 2, 1)
    start = Position(1, None)

    first, second, other, every = desk.read(
        (OF_R1, start), (Caller(frozenset({"r1"}), "t2"), start), (OF_R2, start), (ALL, start)
    )

    assert first is second
    assert desk.questions == 3
    assert first is not None and other is not None and every is not None
    assert [each.read for each in (first, other, every)] == [2, 1, 3]
    shown = [data for _, data in events(first.slices)]
    assert shown and "r2" not in str(shown)


def test_pages_lead_from_one_to_the_next_and_end_between_snapshots(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_changes, "PAGE", 4)
    for number, count in enumerate((3, 3, 1, 7, 1), start=1):
        desk.publish(number, count)
    position, pages = Position(1, None), list[tuple[int, int]]()

    while position.snapshot_id < 5:
        page = desk.page(ALL, position)
        assert not page.is_reset and page.upto.snapshot_id > position.snapshot_id
        pages.append((page.upto.snapshot_id, page.read))
        position = page.upto

    # 3 changed; 1 changed and 2 went; 1 changed and 6 came, more than a page; 1 changed, 6 went.
    assert pages == [(2, 3), (3, 3), (4, 7), (5, 7)]
    end = desk.page(ALL, position)
    assert (end.upto, end.read, end.slices) == (position, 0, [])


def test_an_event_has_the_id_to_go_on_behind_it(desk: Desk) -> None:
    desk.publish(1, 1)
    desk.publish(2, 3)
    desk.publish(3, 4)
    page = desk.page(ALL, Position(1, None))
    whole = events(page.slices)

    for index, (event_id, data) in enumerate(whole):
        inside = desk.followed(ALL).ids.read(event_id or "")
        assert (inside.snapshot_id, inside.within) == (1, data["snapshot_id"])
        rest = desk.page(ALL, inside)
        assert (rest.upto, events(rest.slices)) == (page.upto, whole[index + 1 :])


def test_a_position_inside_a_snapshot_that_is_not_there_yet_begins_again(desk: Desk) -> None:
    """As that of a store that was set back to an earlier copy of itself."""
    desk.publish(1, 1)
    desk.publish(2, 1)
    mark = desk.page(ALL, Position(2, None)).upto.mark

    assert not desk.page(ALL, Position(1, mark, 2, 0)).is_reset
    assert desk.page(ALL, Position(1, mark, 3, 0)).is_reset


@pytest.mark.parametrize(("most", "is_too_large"), [(3, False), (2, True)])
def test_all_rows_are_sent_in_pieces_unless_they_are_too_many(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, most: int, is_too_large: bool
) -> None:
    monkeypatch.setattr("livemart.serve.models.stream.MOST_RESET", most)
    monkeypatch.setattr(written_changes, "SLICE", 2)
    desk.publish(2, 3, 4)

    page = desk.page(OF_R1, Position(1, "of another history"))

    assert (page.is_reset, page.is_too_large, page.upto.snapshot_id) == (True, is_too_large, 2)
    if is_too_large:
        assert not page.slices
        return
    # The head, two rows, one row.
    assert [len(events([each])) for each in page.slices] == [1, 2, 1]
    (_, head), *rows = events(page.slices)
    assert (head["row_count"], head["snapshot_id"]) == (3, 2)
    assert {(event_id, row["op"], row["row"]["restaurant_id"]) for event_id, row in rows} == {
        (None, "insert", "r1")
    }


def test_rows_of_a_stream_that_begins_again_count_as_rows(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a caller who opens streams from the beginning would read without an end."""
    monkeypatch.setattr("livemart.serve.models.stream.MOST_RESET", 3)
    # One is given back each minute.
    shares = Shares(make_settings(tmp_path, caller_rows=1), Measurements())
    desk.request.app.state.parts[Shares] = shares
    desk.publish(2, 3, 1)
    shares.require_rows(desk.request, ALL)

    desk.page(OF_R1, Position(0, ""))
    left = shares.rows.left("address ")
    # It is read up to the row that is one too many.
    assert desk.page(ALL, Position(0, "")).is_too_large

    assert -2 <= left < -1.5 and -6 <= shares.rows.left("address ") < -5.5
    with pytest.raises(ProblemError, match="TOO_MANY_ROWS"):
        shares.require_rows(desk.request, ALL)


def test_a_model_that_is_not_served_any_more_has_no_page(desk: Desk) -> None:
    desk.publish(1, 1)

    assert desk.read((ALL, Position(1, None)), model="nothing") == [None]


def test_a_page_that_others_share_waits_behind_no_stream_with_conditions(desk: Desk) -> None:
    """A caller may have hundreds of these, each and each has another page."""
    desk.publish(1, 1)
    desk.publish(2, 1)
    filtered = replace(
        desk.followed(ALL), conditions=(ColumnCondition("amount", "gte", 1),), kinds=("bigint",)
    )

    async def ask() -> Page | None:
        turns = desk.request.app.state.parts[Shares].turns
        own = ("filtered changes", owner_of(desk.request, ALL))
        for _ in range(2):
            await turns.take(own, 2)
        waits = asyncio.create_task(read_page(desk.request, ALL, filtered, Position(1, None)))
        page = await read_page(desk.request, ALL, desk.followed(ALL), Position(1, None))
        assert not waits.done()
        turns.give_back(own)
        assert await waits == page
        return page

    page = asyncio.run(ask())

    assert page is not None and (page.read, page.sent) == (1, 1)


def test_who_leaves_takes_the_page_of_others_not_along(desk: Desk) -> None:
    desk.publish(1, 1)
    desk.publish(2, 1)

    async def ask() -> Page | None:
        leaves, stays = (
            asyncio.create_task(read_page(desk.request, ALL, desk.followed(ALL), Position(1, None)))
            for _ in range(2)
        )
        await asyncio.sleep(0)
        leaves.cancel()
        return await stays

    page = asyncio.run(ask())

    assert page is not None
    ((_, data),) = events(page.slices)
    assert (data["snapshot_id"], data["op"]) == (2, "update")


def test_many_changes_are_read_and_written_aside(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads of the server share an interpreter: others would wait for so many."""
    monkeypatch.setattr(written_changes, "SMALL", 3)
    asked = list[object]()

    async def read_aside(readings: Readings, read: Any, *arguments: Any) -> Answer[Any]:
        # As on the way to a side process and back.
        question = pickle.loads(pickle.dumps((read, arguments)))
        asked.append(question[0])
        return await readings.read_fresh(lambda view: question[0](view, *question[1]))

    monkeypatch.setattr(Readings, "read_aside", read_aside)
    desk.publish(1, 3)
    desk.publish(2, 3)
    start = Position(1, None)
    small = desk.page(ALL, start)
    assert asked == []
    desk.publish(3, 3)
    large = desk.page(ALL, start)

    assert (small.read, large.read) == (3, 6)
    assert asked == [written_changes.write_page]
    assert events(large.slices)[:3] == events(small.slices)
