"""A waiting record is as old as the first look that saw it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from livemart.land.sources.log_looks import LogLook, LogLooks, log_looks
from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_what_waits_is_as_old_as_the_first_look_that_saw_it() -> None:
    look = LogLook()
    seen = []
    for minutes, end, after in [(0, 5, 5), (5, 30, 10), (10, 50, 20), (15, 50, 30), (20, 50, 50)]:
        look = look.answered(at(minutes), {"a": end, "b": 7}, {"a": after, "b": 7}, None)
        seen.append((look.waiting, look.waits_since))

    assert seen == [
        ({}, None),
        ({"a": 20}, at(5)),
        ({"a": 30}, at(5)),
        # The first look saw none of those from 30 on.
        ({"a": 20}, at(10)),
        ({}, None),
    ]


def test_what_the_kind_knows_of_its_records_goes_before_what_was_seen() -> None:
    look = LogLook().answered(at(5), {"a": 9}, {"a": 4}, at(1))

    assert look.waits_since == at(1)


def test_a_backlog_of_days_leaves_few_looks_and_the_oldest_of_them() -> None:
    look = LogLook()
    for minutes in range(0, 10_000, 5):
        look = look.answered(at(minutes), {"a": 10 + minutes}, {"a": 0}, None)

    assert len(look.earlier) <= 64
    assert look.waits_since == at(0)
    assert [time for time, _ in look.earlier] == sorted(time for time, _ in look.earlier)


def test_a_log_that_is_away_keeps_what_it_said_and_since_when_it_is(place: StoragePlace) -> None:
    looks = LogLooks(place, ["s.a", "s.b"])
    looks.answered(["s.a"], at(0), {"a": 9}, {"a": 4}, None)
    looks.missed(["s.a", "s.b"], at(5), "outbox: its end: no route")
    looks.missed(["s.a"], at(10), "outbox: its end: timeout")

    away = log_looks(place)
    looks.answered(["s.a"], at(15), {"a": 9}, {"a": 9}, None)
    looks.keep()

    assert away == LogLooks(place, ["s.a", "s.b"])._looks | {"s.a": away["s.a"]}
    assert (away["s.a"].at, away["s.a"].waiting, away["s.a"].waits_since) == (
        at(0),
        {"a": 5},
        at(0),
    )
    assert (away["s.a"].away, away["s.a"].away_since) == ("outbox: its end: timeout", at(5))
    assert (away["s.b"].at, away["s.b"].away_since) == (None, at(5))
    assert log_looks(place)["s.a"] == LogLook(at(15), {"a": 9}, {"a": 9})


def test_sources_that_are_gone_and_a_torn_file_are_forgotten(place: StoragePlace) -> None:
    looks = LogLooks(place, ["s.a", "s.b"])
    looks.answered(["s.a", "s.b"], at(0), {"a": 9}, {"a": 4}, at(-1))
    looks.keep()

    LogLooks(place, ["s.b"]).keep()
    kept = log_looks(place)
    replace_file(StateFolder(place).log_looks, '{"s.b": {"at"')

    assert {name: look.told_at for name, look in kept.items()} == {"s.b": at(-1)}
    assert log_looks(place) == {}
