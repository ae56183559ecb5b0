"""A page of changes is read once for all who may see the same, and cut where a client can go on."""

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
from livemart.serve.models import changes, written_changes
from livemart.serve.models.changes import read_page
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.written_changes import Followed, Page
from livemart.serve.shares.shares import Shares, owner_of
from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition
from livemart.store.reader import StoreReader
from livemart.store.served import ChangePage
from livemart.store.snapshot_view import SnapshotView
from tests.serve.apps import make_settings
from tests.serve.owner.order_versions import KEYS, START, orders
from tests.store.stores import fill_store

ALL, OF_R1, OF_R2 = Caller(None), Caller(frozenset({"r1"})), Caller(frozenset({"r2"}))


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
    monkeypatch.setattr(changes, "MOST_RESET", most)
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
    monkeypatch.setattr(changes, "MOST_RESET", 3)
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
