"""The stream of a model over a real socket: no change is missed or repeated."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.models import changes, written_changes
from livemart.serve.models.event_ids import EventIds
from livemart.store.positions import Position
from tests.serve.apps import bearer, make_settings, server
from tests.serve.live.events import Event, open_stream
from tests.serve.live.push_world import DISHES, KEY, World, apply, number_of, until_mark
from tests.store.stores import NOON, fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S


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
    monkeypatch.setattr(changes, "MOST_RESET", 5)

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
