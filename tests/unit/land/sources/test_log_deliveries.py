"""Records of a log land once each, in steps, and again after a crash as the first time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError, SourceError, StateError
from livemart.land.lag import SourceLag, source_lags
from livemart.land.sources.log_deliveries import LogPart
from livemart.run.replays import is_retriable
from tests.deliveries import NOON, Shop, lines, order, source
from tests.models import stream_spec
from tests.record_logs import FolderLog, install_kind, write_partition


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    install_kind(tmp_path / "site", monkeypatch, "folder", "tests.record_logs:FolderLog")
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


def test_what_expired_before_it_was_read_is_a_dead_letter(shop: Shop) -> None:
    # Nobody has missed what was there before the first look.
    write(shop, *lines([order("a")]), start=5)
    assert shop.land(0).counts["bronze.orders"].dead_letters == 0
    write(shop, *lines([order("d")]), start=9)

    landed = shop.land(1)

    assert landed.counts["bronze.orders"].produced == 2
    letters = shop.rows("_dead_letters", "origin", "reason", "detail")
    assert {letter[:2] for letter in letters} == {("orders-0@6", "RECORDS_EXPIRED")}
    assert "records 6 to 8" in letters[0][2]
    assert len(letters) == 2
    assert not shop.land(2).has_records


def test_a_log_that_ends_before_what_was_read_stops_landing(shop: Shop) -> None:
    write(shop, *lines([order("a"), order("b")]))
    shop.land(0)
    write(shop, *lines([order("x")]))

    with pytest.raises(SourceError, match="orders-0: was read to offset 2, ends at 1") as caught:
        shop.land(1)

    assert caught.value.code == "SOURCE_LOG_REPLACED"
    assert not is_retriable(caught.value)


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


def test_landing_is_behind_until_what_waited_at_its_start_has_landed(shop: Shop) -> None:
    limited(shop, 2)
    write(shop, *lines([order(f"o{number}") for number in range(3)]))
    shop.landing._until = {name: log.ends() for name, log in shop.landing._logs.items()}
    behind = []
    for batch in range(2):
        shop.land(batch)
        behind.append(shop.landing.is_behind())
        # Whoever goes on delivering does not keep a refresh from its end.
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

    assert lags == [
        SourceLag(None, None, NOON, 3, "orders-1", 3, NOON),
        SourceLag(None, None, None, 0, looked_at=NOON + timedelta(minutes=5)),
        SourceLag(None, None, None, 0, looked_at=NOON + timedelta(minutes=10)),
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
    # What is not told was seen.
    assert since == [NOON.replace(hour=11, minute=2), NOON.replace(hour=11, minute=4), NOON]


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
        *(None, None, NOON, 1, "orders-0", 1, NOON),
        away="folder: its end: ConnectionError: no route to host",
        away_since=NOON + timedelta(minutes=5),
    )
    # It answered and said its end before it could not be read.
    assert (at_read.away, at_read.away_since) == (
        "folder: orders-0: ZeroDivisionError: division by zero",
        NOON + timedelta(minutes=15),
    )
    assert lag_of(shop) == SourceLag(None, None, records=0, looked_at=shop.now)


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
            "receipt": {"read": {"orders-0": [0, 1]}, "expired": {}},
            "delivered_at": None,
        }
    ]
    assert content["offsets"] == {
        "bronze.orders": {"orders-0": 1},
        "bronze.order_events": {"orders-0": 1},
    }
