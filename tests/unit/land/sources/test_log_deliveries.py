"""Records of a log land once each, in steps, and again after a crash as the first time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError, SourceError, StateError
from livemart.land.lag import SourceLag, source_lags
from livemart.land.sources.log_deliveries import (
    GONE,
    LogPart,
    LostRecords,
    lost_error,
    lost_records,
    unreadable_log,
)
from livemart.run.replays import is_retriable
from tests.deliveries import NOON, Shop, lines, order, source
from tests.models import stream_spec
from tests.record_logs import FolderLog, install_folder_logs, write_partition

Identity = tuple[str | None, str | None]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    install_folder_logs(tmp_path / "site", monkeypatch)
    monkeypatch.setattr("livemart.land.sources.log_deliveries._BETWEEN_LOOKS_S", 0.0)
    log: dict[str, Any] = {
        "kind": "folder",
        "path": "",
        "options": (("folder", str(tmp_path / "log")),),
    }
    (tmp_path / "log").mkdir()
    keyed = source("orders", keys=("order_id",), **log)
    return Shop(None, tmp_path, (keyed, source("order_events", **log)))


def write(shop: Shop, *records: str | None, start: int = 0, name: str = "orders-0") -> None:
    write_partition(shop.root / "log", name, list(records), start)


def limited(shop: Shop, count: int) -> None:
    shop.sources = [
        replace(each, stream=stream_spec(each.stream, max_records_per_trigger=count))
        for each in shop.sources
    ]
    shop.restart()


@pytest.mark.parametrize("left", [0, 1])
def test_a_source_that_left_before_its_batch_landed_misses_nothing_when_it_comes_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    records = lines([order("a"), order("b"), order("c")])
    write(shop, *records[:2])
    shop.land(0)
    write(shop, *records)
    with monkeypatch.context() as patch, pytest.raises(SourceError, match="SOURCE_UNREADABLE"):
        patch.setattr(FolderLog, "read", lambda *_: 1 / 0)
        shop.land(1)
    every = shop.sources

    for batch_id, sources in ((1, [every[left]]), (2, every)):
        shop.sources = sources
        shop.restart()
        shop.land(batch_id)

    for table in ("orders", "order_events"):
        assert shop.rows(table, "order_id") == [("a",), ("b",), ("c",)]


def test_records_land_by_offset_and_nothing_twice(shop: Shop) -> None:
    write(shop, *lines([order("a"), order("b")]), None, *lines([order("a", 1)]))
    write(shop, *lines([order("c")]), name="orders-1", start=7)

    counts = shop.land(0).counts["bronze.orders"]
    shop.restart()
    again = shop.land(1)

    assert (counts.produced, counts.landed, counts.superseded) == (4, 3, 1)
    assert not again.has_records
    assert shop.rows("order_events", "_origin", "order_id") == [
        ("orders-0@0", "a"),
        ("orders-0@1", "b"),
        ("orders-0@3", "a"),
        ("orders-1@7", "c"),
    ]
    assert len(shop.rows("orders", "order_id")) == 3


def test_a_broken_and_an_empty_record_are_dead_letters(shop: Shop) -> None:
    write(shop, "{broken", "", *lines([order("a")]))

    shop.land(0)

    assert shop.rows("_dead_letters", "source", "origin", "reason") == [
        (f"bronze.{name}", f"orders-0@{offset}", "MALFORMED_RECORD")
        for name in ("order_events", "orders")
        for offset in (0, 1)
    ]


def test_a_limit_lands_in_steps(shop: Shop) -> None:
    limited(shop, 2)
    write(shop, *lines([order(f"o{number}") for number in range(5)]))

    produced = [shop.land(batch).counts["bronze.order_events"].produced for batch in range(4)]

    assert produced == [2, 2, 1, 0]
    assert len(shop.rows("order_events", "order_id")) == 5


def test_a_log_without_a_limit_is_taken_in_steps_of_a_million(shop: Shop) -> None:
    ((_, _, without), _), *_ = shop.landing._log_readers({}).items()
    limited(shop, 2)
    ((_, _, with_), _), *_ = shop.landing._log_readers({}).items()

    assert (without, with_) == (1_000_000, 2)


def test_a_replay_reads_what_the_first_attempt_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, *lines([order("a"), order("b")]))
    commit = shop.warehouse.commit

    def crash(relation: str, *args: object, **named: object) -> object:
        if relation == "bronze.orders":
            raise KeyboardInterrupt
        return commit(relation, *args, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(shop.warehouse, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            shop.land(0)
    write(shop, *lines([order("a"), order("b"), order("c")]))
    shop.restart()
    shop.now = NOON.replace(hour=18)
    replay = shop.land(0)

    assert replay.counts["bronze.orders"].produced == 2
    assert replay.landed_at == NOON
    assert shop.land(1).counts["bronze.orders"].produced == 1
    assert [name for (name,) in shop.rows("order_events", "order_id")] == ["a", "b", "c"]


def test_a_new_epoch_goes_on_where_a_table_without_keys_ends(shop: Shop) -> None:
    write(shop, *lines([order("a"), order("b")]))
    shop.land(0)
    write(shop, *lines([order("a"), order("b"), order("c")]))
    shop.epoch = "next"
    shop.restart()

    counts = shop.land(0).counts

    # Its keys absorb what the other reads again.
    assert counts["bronze.orders"].produced == 3
    assert counts["bronze.order_events"].produced == 1
    assert [name for (name,) in shop.rows("order_events", "order_id")] == ["a", "b", "c"]


def go_on(shop: Shop, after_loss: str) -> None:
    shop.sources = [
        replace(
            each,
            stream=replace(each.stream, arrival=replace(each.arrival, after_loss=after_loss)),  # type: ignore[type-var, arg-type]
        )
        for each in shop.sources
    ]
    shop.restart()


def told(shop: Shop) -> set[tuple[str, str, str]]:
    return set(shop.rows("_dead_letters", "origin", "reason", "detail"))


@pytest.mark.parametrize(
    ("after_loss", "orders", "letter"),
    [
        ("earliest", ["a", "d"], "records 6 to 8 had expired before they were read"),
        ("latest", ["a", "e"], "records 6 to 9 had expired before they were read"),
    ],
)
def test_what_expired_before_it_was_read_stops_landing_until_it_is_said_how_to_go_on(
    shop: Shop, after_loss: str, orders: list[str], letter: str
) -> None:
    # Records that disappeared before the first look are not missed.
    write(shop, *lines([order("a")]), start=5)
    assert shop.land(0).counts["bronze.orders"].dead_letters == 0
    write(shop, *lines([order("d")]), start=9)
    with pytest.raises(SourceError, match="orders-0: records 6 to 8 had expired") as caught:
        shop.land(1)
    go_on(shop, after_loss)

    landed = shop.land(1)
    write(shop, *lines([order("d"), order("e")]), start=9)
    if after_loss == "latest":
        shop.land(2)

    assert (caught.value.code, is_retriable(caught.value)) == ("SOURCE_RECORDS_LOST", False)
    assert "bronze.orders, bronze.order_events: folder: " in caught.value.message
    assert "after_loss: earliest" in caught.value.hint
    assert landed.counts["bronze.orders"].dead_letters == 1
    assert told(shop) == {("orders-0@6", "RECORDS_EXPIRED", letter)}
    assert [name for (name,) in shop.rows("order_events", "order_id")] == orders


def named_logs(monkeypatch: pytest.MonkeyPatch, ids: dict[str, str]) -> None:
    """Let logs in folders have identities: those of `ids`, which a test may change."""
    patch = partial(monkeypatch.setattr, FolderLog, raising=False)
    patch("identities", lambda _: ids)
    patch("is_selected", lambda _, partition: partition != "left-out")
    patch("absent", lambda log: ["orders-9"] if ids.get("orders-9") == "absent" else [])


@pytest.mark.parametrize(
    ("after_loss", "orders"), [("earliest", ["a", "x", "y"]), ("latest", ["a", "z"])]
)
def test_a_log_made_anew_is_known_though_it_has_more_records(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, after_loss: str, orders: list[str]
) -> None:
    ids = {"orders-0": "one"}
    named_logs(monkeypatch, ids)
    write(shop, *lines([order("a")]))
    shop.land(0)
    ids["orders-0"] = "two"
    records = lines([order("x"), order("y")])
    write(shop, *records)
    with pytest.raises(SourceError, match="orders-0: another partition has its name") as caught:
        shop.land(1)
    go_on(shop, after_loss)

    shop.land(1)
    if after_loss == "latest":
        write(shop, *records, *lines([order("z")]))
    shop.restart()
    shop.land(2)

    assert caught.value.code == "SOURCE_RECORDS_LOST"
    assert [name for (name,) in shop.rows("order_events", "order_id")] == orders
    ((origin, _, detail),) = told(shop)
    assert origin == "orders-0@1"
    assert "was read to offset 1" in detail


def test_a_partition_that_is_gone_stops_landing_and_may_come_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {"orders-0": "one", "orders-1": "two", "left-out": "three"}
    named_logs(monkeypatch, ids)
    for name in ids:
        write(shop, *lines([order(f"of {name}")]), name=name)
    shop.land(0)
    for name in ("orders-1", "left-out"):
        del ids[name]
        (shop.root / "log" / f"{name}.json").unlink()
    with pytest.raises(SourceError, match="folder: orders-1: the partition is gone") as caught:
        shop.land(1)
    go_on(shop, "earliest")
    letters = shop.land(1).counts["bronze.orders"].dead_letters
    ids["orders-1"] = "four"
    write(shop, *lines([order("x"), order("y")]), name="orders-1")
    shop.restart()
    back = shop.land(2)

    # A partition that the options no longer select is not missed.
    assert "left-out" not in caught.value.message
    assert letters == 1
    assert (back.counts["bronze.orders"].produced, back.counts["bronze.orders"].dead_letters) == (
        *(2, 0),
    )
    assert not shop.land(3).has_records


def test_what_options_name_and_is_not_there_is_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_logs(monkeypatch, {"orders-9": "absent"})

    with pytest.raises(SourceError, match="folder: missing: orders-9") as caught:
        shop.land(0)

    assert caught.value.code == "SOURCE_UNREADABLE"
    assert is_retriable(caught.value)


def test_a_replay_whose_records_expired_meanwhile_goes_on_as_it_is_said(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, *lines([order("a"), order("b"), order("c")]))
    with monkeypatch.context() as patch:
        patch.setattr(LogPart, "read", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shop.land(0)
    write(shop, *lines([order("c"), order("d")]), start=2)
    with pytest.raises(SourceError, match="orders-0: records 0 to 1 had expired") as caught:
        shop.land(0)
    go_on(shop, "earliest")

    first, second = shop.land(0), shop.land(1)

    assert caught.value.code == "SOURCE_RECORDS_LOST"
    assert first.counts["bronze.orders"].dead_letters == 1
    assert second.counts["bronze.orders"].produced == 1
    assert [name for (name,) in shop.rows("order_events", "order_id")] == ["c", "d"]
    assert {origin for origin, _, _ in told(shop)} == {"orders-0@0"}


def test_a_replay_tells_what_was_lost_before_it_too(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, *lines([order("a"), order("b")]))
    shop.land(0)
    go_on(shop, "earliest")
    write(shop, *lines([order("d"), order("e")]), start=4)
    with monkeypatch.context() as patch:
        patch.setattr(LogPart, "read", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shop.land(1)
    write(shop, *lines([order("e")]), start=5)
    shop.restart()

    assert shop.land(1).counts["bronze.orders"].dead_letters == 2
    assert {origin for origin, _, _ in told(shop)} == {"orders-0@2", "orders-0@4"}


def bounded_logs(
    monkeypatch: pytest.MonkeyPatch, begins: dict[str, int], bounds: dict[str, int]
) -> None:
    patch = partial(monkeypatch.setattr, FolderLog, raising=False)
    patch("begins", lambda _: begins)
    patch("bounds", lambda _: bounds)


def test_a_source_begins_and_ends_where_it_is_told_to(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = {"orders-0": 2}
    bounded_logs(monkeypatch, begins, {"orders-0": 3})
    records = lines([order("a"), order("b"), order("c"), order("d")])
    write(shop, *records[:2])
    begun = shop.land(0)
    # Where it began is kept, though nothing was there yet.
    begins["orders-0"] = 4
    shop.restart()
    write(shop, *records)
    write(shop, *records[:1], name="orders-1")
    shop.land(1)
    again = shop.land(2)

    assert not (begun.has_records or again.has_records)
    assert shop.rows("order_events", "_origin") == [("orders-0@2",), ("orders-1@0",)]
    assert lag_of(shop).records == 0
    assert not shop.landing._logs["bronze.orders"].is_behind(
        *({"orders-0": 3, "orders-1": 1}, shop.landing._logs["bronze.orders"].ends())
    )


def test_a_log_that_ends_before_what_was_read_stops_landing(shop: Shop) -> None:
    write(shop, *lines([order("a"), order("b")]))
    shop.land(0)
    write(shop, *lines([order("x")]))

    with pytest.raises(SourceError, match="orders-0: was read to offset 2, ends at 1") as caught:
        shop.land(1)

    assert caught.value.code == "SOURCE_LOG_REPLACED"
    assert not is_retriable(caught.value)


@pytest.mark.parametrize("after_loss", ["stop", "earliest", "latest"])
@pytest.mark.parametrize(("is_replay", "held"), [(False, None), (False, 1), (True, None)])
def test_a_server_that_does_not_know_yet_of_all_that_is_there_is_asked_again(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    after_loss: str,
    is_replay: bool,
    held: int | None,
) -> None:
    named_logs(monkeypatch, {"orders-0": "one"})
    go_on(shop, after_loss)
    write(shop, *lines([order("a"), order("b")]))
    shop.land(0)
    records = lines([order("a"), order("b"), order("c")])
    write(shop, *records)
    if is_replay:
        with monkeypatch.context() as patch:
            patch.setattr(LogPart, "read", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                shop.land(1)
    looks: list[int] = []

    def steady(log: FolderLog) -> FolderLog:
        looks.append(len(looks))
        now = shop.root / f"look-{len(looks)}"
        now.mkdir()
        if len(looks) > 2:
            write_partition(now, "orders-0", [*records])
        elif held is not None:
            write_partition(now, "orders-0", [*records[:held]])
        return type(log)(str(now))

    monkeypatch.setattr(FolderLog, "steady", steady, raising=False)
    shop.restart()
    shop.land(1)

    assert [name for (name,) in shop.rows("order_events", "order_id")] == ["a", "b", "c"]
    assert told(shop) == set()


def test_a_log_that_cannot_be_reached_is_tried_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderLog, "fails", "no route to host")

    with pytest.raises(SourceError, match="ConnectionError: no route to host") as caught:
        shop.land(0)

    assert caught.value.code == "SOURCE_UNREADABLE"
    assert is_retriable(caught.value)
    part = LogPart("folder", FolderLog(str(shop.root / "log")), "gone", 0, 1)
    with pytest.raises(SourceError, match="folder: gone: KeyError"):
        list(part._records())


def test_all_questions_of_a_plan_are_put_to_the_log_as_it_is_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, *lines([order("a")]))
    looks: list[FolderLog] = []

    def steady(log: FolderLog) -> FolderLog:
        looks.append(log)
        now = Path(log.folder).with_name(f"{len(looks)}")
        shutil.copytree(log.folder, now)
        # Records that arrive meanwhile belong to the next plan.
        write(shop, *lines([order("a"), order("b")]))
        return type(log)(str(now))

    monkeypatch.setattr(FolderLog, "steady", steady, raising=False)
    batches = [shop.land(number).counts["bronze.orders"].produced for number in range(2)]

    assert batches == [1, 1]
    # One for each plan.
    assert len(looks) == 2


def test_a_log_that_denies_access_is_not_tried_again() -> None:
    error = unreadable_log("folder", "its end", PermissionError("no such user"))

    assert error.code == "SOURCE_ACCESS_DENIED"
    assert error.message == "folder: its end: PermissionError: no such user"
    assert not is_retriable(error)


def test_landing_is_behind_until_what_waited_at_its_start_has_landed(shop: Shop) -> None:
    limited(shop, 2)
    write(shop, *lines([order(f"o{number}") for number in range(3)]))
    shop.landing._until = {name: log.ends() for name, log in shop.landing._logs.items()}
    behind = []
    for batch in range(2):
        shop.land(batch)
        behind.append(shop.landing.is_behind())
        # A steady writer does not keep a refresh from ending.
        write(shop, *lines([order(f"o{number}") for number in range(9 + batch)]))

    assert behind == [True, False]


def lag_of(shop: Shop, name: str = "bronze.orders") -> SourceLag:
    return source_lags(shop.warehouse.root, None)[name]


def test_what_a_limit_leaves_in_a_log_waits_since_it_was_first_seen(shop: Shop) -> None:
    limited(shop, 4)
    records = lines([order(f"o{number}") for number in range(6)])
    write(shop, *records[:1], name="orders-0")
    write(shop, *records, name="orders-1")
    lags = []
    for batch in range(3):
        shop.land(batch)
        shop.restart()
        lags.append(lag_of(shop))
        shop.now += timedelta(minutes=5)

    none = {"orders-0": 0, "orders-1": 0}
    assert lags == [
        SourceLag(None, None, NOON, 3, {"orders-0": 0, "orders-1": 3}, NOON),
        SourceLag(None, None, None, 0, none, NOON + timedelta(minutes=5)),
        SourceLag(None, None, None, 0, none, NOON + timedelta(minutes=10)),
    ]


def test_a_kind_may_tell_when_its_records_were_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(shop, 2)
    write(shop, *lines([order(f"o{number}") for number in range(9)]))
    asked = []

    def written_at(_: FolderLog, partition: str, offset: int) -> datetime:
        asked.append((partition, offset))
        if offset > 4:
            raise ConnectionError("no route to host")
        return datetime(2026, 3, 1, 11, offset)

    monkeypatch.setattr(FolderLog, "written_at", written_at, raising=False)
    since = []
    for batch in range(3):
        shop.land(batch)
        since.append(lag_of(shop).oldest_at)

    assert asked == [("orders-0", 2), ("orders-0", 4), ("orders-0", 6)]
    # A loss that is not reported was seen before.
    assert since == [NOON.replace(hour=11, minute=2), NOON.replace(hour=11, minute=4), NOON]


def test_times_that_take_long_to_tell_are_not_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(shop, 2)
    for name in ("orders-0", "orders-1"):
        write(shop, *lines([order(f"o{number}") for number in range(9)]), name=name)
    monkeypatch.setattr("livemart.land.sources.log_deliveries._TIMES_S", -1.0)
    asked: list[str] = []

    def written_at(_: FolderLog, partition: str, offset: int) -> datetime:
        asked.append(partition)
        return datetime(2026, 3, 1, 11)

    monkeypatch.setattr(FolderLog, "written_at", written_at, raising=False)
    shop.land(0)

    assert len(asked) == 1
    assert lag_of(shop).oldest_at == NOON


def test_a_log_that_is_away_is_told_with_what_was_known_until_it_is_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(shop, 2)
    write(shop, *lines([order(f"o{number}") for number in range(3)]))
    shop.land(0)
    shop.now += timedelta(minutes=5)
    with monkeypatch.context() as patch:
        patch.setattr(FolderLog, "fails", "no route to host")
        for _ in range(2):
            with pytest.raises(SourceError):
                shop.land(1)
            shop.now += timedelta(minutes=5)
    at_plan = lag_of(shop)
    with monkeypatch.context() as patch:
        patch.setattr(FolderLog, "read", lambda *_: 1 / 0)
        with pytest.raises(SourceError):
            shop.land(1)
    at_read = lag_of(shop)
    shop.land(1)
    shop.land(2)

    assert at_plan == SourceLag(
        *(None, None, NOON, 1, {"orders-0": 1}, NOON),
        away="folder: its end: ConnectionError: no route to host",
        away_since=NOON + timedelta(minutes=5),
    )
    # It answered and said its end before it could not be read.
    assert (at_read.away, at_read.away_since) == (
        "folder: orders-0: ZeroDivisionError: division by zero",
        NOON + timedelta(minutes=15),
    )
    assert lag_of(shop) == SourceLag(None, None, None, 0, {"orders-0": 0}, shop.now)


def test_files_and_logs_land_in_one_batch(shop: Shop) -> None:
    files = source("from_files")
    shop.sources = [*shop.sources, files]
    shop.restart()
    write(shop, *lines([order("a")]))
    path = shop.deliver("orders/1.jsonl", lines([order("b")]))

    counts = shop.landing.land_files(0, {"bronze.from_files": [path]}).counts

    assert {name: it.produced for name, it in counts.items()} == {
        "bronze.orders": 1,
        "bronze.order_events": 1,
        "bronze.from_files": 1,
    }


def test_another_kind_waits_until_the_batch_has_landed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, *lines([order("a")]))
    with monkeypatch.context() as patch:
        patch.setattr(LogPart, "read", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shop.land(0)
    shop.sources = [source("orders", keys=("order_id",))]
    shop.restart()

    with pytest.raises(StateError, match="begun with kind folder") as caught:
        shop.land(0)

    assert caught.value.code == "SOURCE_KIND_CHANGED"


def test_all_kinds_that_do_not_open_are_told_at_once(shop: Shop) -> None:
    broken = source("one", kind="folder", path="", options=(("fold", "x"),))
    absent = source("two", kind="absent", path="")
    shop.sources = [broken, absent]

    with pytest.raises(ConfigError) as caught:
        shop.restart()

    assert caught.value.code == "SOURCE_KIND_BROKEN"
    assert "bronze.one: kind folder: TypeError" in str(caught.value)
    assert "bronze.two: kind absent" in str(caught.value)


def test_a_manifest_keeps_ranges_and_offsets_as_json(shop: Shop) -> None:
    write(shop, *lines([order("a")]))
    shop.land(0)

    path = shop.warehouse.root / "_livemart" / "files" / shop.epoch / "0.json"
    content = json.loads(path.read_text())

    assert content["deliveries"] == [
        {
            "kind": "folder",
            "relations": ["bronze.orders", "bronze.order_events"],
            "receipt": {"read": {"orders-0": [0, 1]}, "lost": []},
            "delivered_at": None,
        }
    ]
    assert content["offsets"] == {
        "bronze.orders": {"orders-0": 1},
        "bronze.order_events": {"orders-0": 1},
    }
    assert content["identities"] == {}


@pytest.mark.parametrize(
    ("start", "identity", "expected"),
    [
        # The oldest record that is there is the next one to be read, or an earlier one.
        (5, None, None),
        (0, None, None),
        (6, None, LostRecords("a", 5, 6, "expired")),
        # The partition's identity is unknown, or known at one time only.
        (6, (None, None), LostRecords("a", 5, 6, "expired")),
        (6, ("x", None), LostRecords("a", 5, 6, "expired")),
        (6, (None, "x"), LostRecords("a", 5, 6, "expired")),
        (6, ("x", "x"), LostRecords("a", 5, 6, "expired")),
        # Offsets of another log mean nothing, even if they look right.
        (5, ("x", "y"), LostRecords("a", 5, None, "replaced")),
        (6, ("x", "y"), LostRecords("a", 5, None, "replaced")),
        # Absence is a loss only where the source can tell it from a list that is short.
        (None, None, None),
        (None, (None, None), LostRecords("a", 5, None, "gone")),
        (None, ("x", None), LostRecords("a", 5, None, "gone")),
        # Its removal was reported once; a new partition of its name is another one.
        (None, (GONE, None), None),
        (6, (GONE, "y"), None),
    ],
)
def test_one_partition_lost_this(
    start: int | None, identity: Identity | None, expected: LostRecords | None
) -> None:
    starts = {} if start is None else {"a": start}
    identities = {} if identity is None else {"a": identity}

    losses = list(lost_records({"a": 5}, starts, identities))

    assert losses == ([] if expected is None else [expected])


def test_a_partition_that_was_never_read_lost_nothing() -> None:
    assert list(lost_records({}, {"a": 9}, {"a": ("x", "y")})) == []


def test_all_losses_are_told_at_once_in_the_order_of_partitions() -> None:
    after = {"b": 5, "a": 2, "c": 1}
    losses = list(lost_records(after, {"b": 8, "c": 0}, {"a": ("x", None), "c": ("x", "y")}))

    error = lost_error("kafka", ["bronze.orders", "bronze.events"], losses)

    assert error.code == "SOURCE_RECORDS_LOST"
    assert error.message == (
        "bronze.orders, bronze.events: kafka: "
        "a: the partition is gone: it was read to offset 2, and what it held from there on was not "
        "read; "
        "b: records 5 to 7 had expired before they were read; "
        "c: another partition has its name: the one before was read to offset 1, and what it held "
        "from there on was not read"
    )
    for choice in ("after_loss: earliest", "after_loss: latest"):
        assert choice in error.hint
