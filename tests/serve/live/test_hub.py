"""The hub goes on, whatever becomes of what is computed ahead."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from livemart.errors import PublishError
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.live.hub import Faults, Hub, Topic
from livemart.serve.live.readings import Readings
from livemart.serve.owner.answers import Answers
from livemart.store.reader import StoreReader
from livemart.store.served import Published
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

AWAY = PublishError("STORE_UNREACHABLE", "the store is away", hint="wait")
EMPTY = PublishError("STORE_EMPTY", "nothing is published", hint="build")


def test_a_snapshot_is_told_even_if_nothing_could_be_computed_ahead(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))

    async def prepare(topics: frozenset[Topic]) -> None:
        raise ValueError("a row that nobody foresaw")

    async def look() -> Published | None:
        with closing(StoreReader.open(store_url)) as reader:
            hub = _hub(reader, tokens)
            hub.prepare = prepare
            await hub.look()
            return hub.published

    with closing(TokenStore(store_url)) as tokens, capture_logs() as logs:
        published = asyncio.run(look())

    assert published is not None and published.snapshot_id == 1
    assert [each["event"] for each in logs] == ["prepare_failed"]


@pytest.mark.parametrize("times", [1, 3])
def test_who_comes_upon_a_snapshot_does_not_wait_until_it_is_prepared(
    store_url: str, times: int
) -> None:
    fill_store(store_url, reference_tables([]))
    calls = 0

    async def watch() -> tuple[bool, Published | None]:
        nonlocal calls
        ready, may_go_on = asyncio.Event(), asyncio.Event()

        async def prepare(topics: frozenset[Topic]) -> None:
            nonlocal calls
            calls += 1
            ready.set()
            await may_go_on.wait()

        with closing(StoreReader.open(store_url)) as reader:
            hub = _hub(reader, tokens)
            hub.prepare = prepare
            found = reader.newest()
            assert found is not None
            for _ in range(times):
                hub.note_newer(found)
            await asyncio.wait_for(ready.wait(), PATIENCE_S)
            was_told = hub.published is not None
            may_go_on.set()
            published = await asyncio.wait_for(hub.wait(None), PATIENCE_S)
            hub.close()
            return was_told, published

    with closing(TokenStore(store_url)) as tokens:
        was_told, published = asyncio.run(watch())

    assert not was_told
    assert published is not None and published.snapshot_id == 1
    assert calls == 1


def test_who_saw_a_snapshot_is_never_shown_one_before_it(store_url: str) -> None:
    fill_store(store_url, reference_tables())

    async def read() -> list[int]:
        may_go_on = asyncio.Event()

        async def prepare(topics: frozenset[Topic]) -> None:
            await may_go_on.wait()

        with closing(StoreReader.open(store_url)) as reader:
            hub = _hub(reader, tokens)
            readings = Readings(reader, hub)
            answers = Answers(readings, hub)
            await hub.look()
            before = await answers.restaurant("r1", "metrics")
            await asyncio.to_thread(fill_store, store_url, reference_tables(), snapshot_id=2)
            hub.prepare = prepare
            # As rows of a model are read: past all that is kept.
            published = (await readings.read_fresh(lambda view: None)).published
            after = await answers.restaurant("r1", "metrics")
            trend = await answers.restaurant("r2", "trend")
            still = hub.published
            may_go_on.set()
            hub.close()
            readings.close()
        assert before and after and trend and still
        found = [
            before.facts.published,
            published,
            after.facts.published,
            trend.facts.published,
            still,
        ]
        return [each.snapshot_id for each in found]

    with closing(TokenStore(store_url)) as tokens:
        actual = asyncio.run(read())

    assert actual == [1, 2, 2, 2, 1]


def test_a_store_that_was_set_back_is_believed(store_url: str) -> None:
    fill_store(store_url, reference_tables([]), snapshot_id=5)

    async def look() -> list[int | None]:
        with closing(StoreReader.open(store_url)) as reader:
            hub = _hub(reader, tokens)
            hub.note_newer(await asyncio.to_thread(_require, reader))
            met = hub.newest
            await asyncio.to_thread(
                fill_store, store_url, reference_tables([]), snapshot_id=3, is_start=True
            )
            await hub.look()
            hub.close()
            return [each.snapshot_id if each else None for each in (met, hub.newest)]

    with closing(TokenStore(store_url)) as tokens:
        actual = asyncio.run(look())

    assert actual == [5, 3]


def test_an_error_that_nobody_foresaw_is_told_once_and_the_hub_goes_on(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))

    class Failing(StoreReader):
        failures = 3

        def newest(self) -> Published | None:
            if self.failures:
                self.failures -= 1
                raise ZeroDivisionError("a thing that nobody foresaw")
            return super().newest()

    async def look() -> list[str | None]:
        with closing(Failing.open(store_url)) as reader:
            hub = _hub(reader, tokens)
            found = []
            for _ in range(4):
                await hub.look()
                found.append(hub.failure.message if hub.failure else None)
            assert hub.published is not None
            return found

    with closing(TokenStore(store_url)) as tokens, capture_logs() as logs:
        found = asyncio.run(look())

    said = "snapshots: found ZeroDivisionError: a thing that nobody foresaw"
    assert found == [said, said, said, None]
    assert [each["event"] for each in logs] == ["look_failed", "store_back"]


def test_tokens_that_cannot_be_read_are_a_failure_until_they_can(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))
    clock = [0.0]

    class Failing(TokenBook):
        is_failing = True

        def refresh(self) -> None:
            if self.is_failing:
                raise ZeroDivisionError
            super().refresh()

    async def look(book: Failing) -> list[tuple[bool, bool]]:
        with closing(StoreReader.open(store_url)) as reader:
            hub = Hub(reader, book)
            found = []
            for clock[0], book.is_failing in ((0.0, True), (0.5, True), (1.0, True), (2.0, False)):
                await hub.look()
                found.append((hub.failure is not None, hub.published is not None))
            return found

    with closing(TokenStore(store_url)) as tokens, capture_logs() as logs:
        found = asyncio.run(look(Failing(tokens, clock=lambda: clock[0])))

    # Between two readings of the tokens snapshots alone are looked at: no sign of their return.
    assert found == [(True, True), (True, True), (True, True), (False, True)]
    assert [each["event"] for each in logs] == ["look_failed", "store_back"]


def _require(reader: StoreReader) -> Published:
    found = reader.newest()
    assert found is not None
    return found


def _hub(reader: StoreReader, tokens: TokenStore) -> Hub:
    return Hub(reader, TokenBook(tokens))


def test_no_age_is_below_zero_and_a_clock_that_was_ahead_hides_no_end_of_the_pipeline(
    store_url: str,
) -> None:
    noon, passed = datetime(2026, 3, 2, 12, tzinfo=UTC), [0.0]
    fill_store(store_url, reference_tables([]), now=noon + timedelta(days=1))

    async def ages() -> list[float]:
        with closing(StoreReader.open(store_url)) as reader:
            hub = Hub(reader, TokenBook(tokens), clock=lambda: passed[0])
            await hub.look()
            published = hub.published
            assert published is not None
            found = []
            # The wall clock stays behind, goes further back, and is right again in the end.
            for seconds, now in (
                (0, noon),
                (30, noon + timedelta(seconds=30)),
                (90, noon - timedelta(hours=1)),
                (91, noon + timedelta(days=1, seconds=7)),
            ):
                passed[0] = seconds
                found.append(hub.staleness_s(published, now))
            return found

    with closing(TokenStore(store_url)) as tokens:
        assert asyncio.run(ages()) == [0, 30, 90, 7]


def test_a_kind_of_fault_is_told_once_until_all_is_well() -> None:
    faults = Faults()

    with capture_logs() as told:
        faults.report("tokens", AWAY)
        faults.report("snapshots", AWAY)
        faults.report("snapshots", EMPTY)
        faults.resolve("tokens")
        faults.report("tokens", AWAY)
        faults.resolve("tokens")
        faults.resolve("snapshots")
        faults.resolve("snapshots")
        faults.report("tokens", AWAY)

    assert [it["event"] for it in told] == [
        *("store_unreachable", "store_unreachable", "store_back", "store_unreachable")
    ]
    assert "nothing is published" in told[1]["error"]


def test_answers_are_refused_with_the_newest_fault_that_still_holds() -> None:
    faults = Faults()
    newest = [faults.newest]

    faults.report("snapshots", EMPTY)
    newest.append(faults.newest)
    faults.report("tokens", AWAY)
    newest.append(faults.newest)
    faults.report("snapshots", EMPTY)
    newest.append(faults.newest)
    faults.resolve("snapshots")
    newest.append(faults.newest)
    faults.resolve("tokens")
    newest.append(faults.newest)

    assert newest == [None, EMPTY, AWAY, EMPTY, AWAY, None]


def test_a_fault_of_ours_is_told_with_its_traceback_and_refuses_as_any_other() -> None:
    faults = Faults()

    with capture_logs() as told:
        for _ in range(2):
            faults.report("snapshots", ZeroDivisionError("by zero"))

    (event,) = told
    assert (event["event"], event["part"]) == ("look_failed", "snapshots")
    assert isinstance(event["exc_info"], ZeroDivisionError)
    assert faults.newest is not None and faults.newest.code == "STORE_UNREACHABLE"
    assert "ZeroDivisionError: by zero" in str(faults.newest)
