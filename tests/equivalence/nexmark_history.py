"""Random histories for the sources of `tests/projects/nexmark`: auctions, their bids, their people.

Rows only come; some come twice, late, or with NULL where a column may be. Values are few, so that
prices tie, windows are shared and sessions touch. Texts and times are often those on which engines
disagree.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.disagreeing_values import KINDS
from tests.equivalence.shapes_history import STARTED_AT, Batch, Record

_WORDS = KINDS["word"].values
_CHANNELS = ("Apple", "Google", "channel-7", "channel-8", "apple", None)
# Each has its own window and session.
_FAR_TIMES = (
    datetime(1582, 10, 4, 23, 59, 59, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2262, 4, 11, 23, 47, 16, 854_776, tzinfo=UTC),
)


def history(
    seed: int, batches: int = 4, bids: int = 40, started_at: datetime = STARTED_AT
) -> Iterator[Batch]:
    """Yield the batches of one history; the same seed gives the same history.

    Args:
        seed: of the random numbers.
        batches: how many; the first one holds twice as much as the others.
        bids: about how many bids a batch holds.
        started_at: the clock of the first batch, UTC.
    """
    chance = random.Random(seed)
    now = started_at
    for number in range(batches):
        share = 2 if number == 0 else 1
        records: dict[str, list[Record]] = {"person": [], "auction": [], "bid": []}
        for _ in range(share * chance.choice([2, 4])):
            records["person"].append(_person(chance, now))
        for _ in range(share * chance.choice([2, 5])):
            records["auction"].append(_auction(chance, now))
        for _ in range(share * chance.choice([1, bids // 2, bids])):
            bid = _bid(chance, now)
            records["bid"] += [bid] * chance.choice([1, 1, 1, 1, 2])
        yield Batch(now, records)
        now += timedelta(minutes=chance.choice([0, 2, 10, 60]))


def _person(chance: random.Random, now: datetime) -> Record:
    return {
        "id": chance.randint(1, 6),
        "name": chance.choice(["Ada", "Bo", None, chance.choice(_WORDS)]),
        "email_address": "a@example.org",
        "city": chance.choice(["Portland", "Boise"]),
        "state": chance.choice(["OR", "ID", "CA", "WY", None]),
        "date_time": _time(chance, now),
        "extra": chance.choice(["abc", "ccc", chance.choice(_WORDS)]),
    }


def _auction(chance: random.Random, now: datetime) -> Record:
    opened = now - timedelta(minutes=chance.randint(0, 40))
    return {
        "id": chance.randint(1, 9),
        "item_name": chance.choice(["lamp", None, chance.choice(_WORDS)]),
        "initial_bid": chance.choice([1, 50]),
        "reserve": chance.choice([100, 500]),
        "date_time": _text(opened),
        "expires": _text(opened + timedelta(minutes=chance.choice([5, 30, 120]))),
        "seller": chance.choice([1, 2, 3, 4, 5, 6, None]),
        "category": chance.choice([10, 10, 11, None]),
        "extra": "",
    }


def _bid(chance: random.Random, now: datetime) -> Record:
    return {
        "auction": chance.choice([*range(1, 10), None]),
        "bidder": chance.choice([*range(1, 7), None]),
        "price": chance.choice([20, 99, 100, 100, 450, 500, 2**53 + 1, None]),
        "channel": chance.choice(_CHANNELS),
        "url": chance.choice(
            ["https://www.example.org/a/b/item.htm?query=1&channel_id=77", "https://x/y", None]
        ),
        "date_time": _time(chance, now),
        "extra": chance.choice(["abc", "ccc", chance.choice(_WORDS), None]),
    }


def _time(chance: random.Random, now: datetime) -> str | None:
    """Return a time up to an hour before now, often on a boundary of a window, or None."""
    if chance.random() < 0.04:
        return None
    if chance.random() < 0.04:
        return _text(chance.choice(_FAR_TIMES))
    shift = timedelta(seconds=chance.choice([0, 0, 1, -1, 30]))
    return _text(now - timedelta(minutes=chance.randint(0, chance.choice([3, 20, 60]))) + shift)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
