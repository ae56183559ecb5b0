"""Panes that are kept current from the change log are the panes that the store holds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from livemart.serve.owner.facts import end_of
from livemart.serve.owner.panes import LONGEST, TREND, Panes, follow_panes, read_panes
from livemart.store.reader import StoreReader
from livemart.store.served import Published
from tests.store.stores import KEYS, NOON, Order, fill_store, make_orders, reference_tables

NAMES = ("r1", "r2", "r3")
KEYED = {TREND: KEYS[TREND]}


def change(orders: list[Order], until: datetime, chance: random.Random) -> list[Order]:
    """Return orders of which some went, some came late and some are new."""
    rest = [order for order in orders if chance.random() > 0.01]
    back = chance.choice([5, 90, 2_000, 15_000, 30_000])
    for number in range(chance.randrange(4)):
        at = until - timedelta(minutes=chance.randrange(1, back + 1))
        rest.append(
            Order(f"{until}-{number}", chance.choice(NAMES), "c1", at, (("d1", 1 + number),))
        )
    return rest


def trend_of(orders: list[Order], until: datetime) -> dict[str, pa.Table]:
    return {TREND: reference_tables(orders, until)[TREND]}


def within(panes: Mapping[str, Panes], end: datetime) -> dict[str, object]:
    """Return what is asked of panes: those of the last two weeks."""
    start = end - LONGEST
    return {
        name: each.sums(_edges(start, timedelta(minutes=5), 4_032)) for name, each in panes.items()
    }


@pytest.mark.parametrize("keys", [KEYED, {}], ids=["keyed", "bag"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(1, 4))]
)
def test_followed_panes_are_those_of_the_store(
    store_url: str, keys: Mapping[str, tuple[str, ...]], seed: int
) -> None:
    chance = random.Random(seed)
    orders = make_orders(days=16, a_day=8, seed=seed)
    known: tuple[Published, dict[str, Panes]] | None = None

    with closing(StoreReader.open(store_url)) as reader:
        for number in range(1, 6):
            until = NOON + timedelta(minutes=5 * number)
            fill_store(store_url, trend_of(orders, until), keys, number, until)
            with reader.snapshot() as view:
                end = end_of(view.published)
                read = read_panes(view, NAMES, end - LONGEST)
                if known is not None:
                    followed = follow_panes(view, *known, end)
                    assert within(followed, end) == within(read, end)
                    read = followed
                # A reader need not follow each snapshot.
                if known is None or chance.random() < 0.7:
                    known = (view.published, read)
            orders = change(orders, until, chance)


def test_the_followed_panes_of_one_are_not_another_s(store_url: str) -> None:
    orders = make_orders(days=2)
    fill_store(store_url, trend_of(orders, NOON), KEYED)
    late = Order("late", "r2", "c1", NOON - timedelta(minutes=50), (("d1", 9),))

    with closing(StoreReader.open(store_url)) as reader:
        with reader.snapshot() as view:
            before, known = view.published, read_panes(view, ("r1",), NOON - LONGEST)
        fill_store(store_url, trend_of([*orders, late], NOON), KEYED, 2)
        with reader.snapshot() as view:
            ours = view.changed_since(TREND, "pane_started_at", before, frozenset({"r1"}))
            theirs = view.changed_since(TREND, "pane_started_at", before, frozenset({"r2"}))
            nobody_s = view.changed_since(TREND, "pane_started_at", before, frozenset())
            followed = follow_panes(view, before, known, NOON)

    assert (ours, nobody_s) == ({}, {})
    assert theirs == {"r2": late.pane}
    assert followed == known


def test_what_is_not_known_to_have_changed_is_read_anew(store_url: str) -> None:
    orders = make_orders(days=2)
    fill_store(store_url, trend_of(orders, NOON), KEYED)

    with closing(StoreReader.open(store_url)) as reader:
        with reader.snapshot() as view:
            before, known = view.published, read_panes(view, NAMES, NOON - LONGEST)
        # Copied whole, since its SQL is another.
        copied = {TREND: "g"}
        fill_store(store_url, trend_of(orders, NOON), KEYED, 2, fingerprints=copied)
        with reader.snapshot() as view:
            now = view.published
            found = [
                follow_panes(view, before, known, NOON),
                follow_panes(view, replace(now, epoch="another"), known, NOON),
                follow_panes(view, replace(now, snapshot_id=7), known, NOON),
                # The clock was set back: the panes do not reach so far.
                follow_panes(view, now, known, NOON - timedelta(minutes=5)),
            ]
            same = follow_panes(view, now, known, NOON)

    assert found == [{}, {}, {}, {}]
    assert same == known


def test_an_update_tells_nothing_of_a_column_beside_the_key(store_url: str) -> None:
    rows = [{"id": "a", "restaurant_id": "r1", "at": NOON}]
    kinds = [("id", pa.string()), ("restaurant_id", pa.string())]
    schema = pa.schema([*kinds, ("at", pa.timestamp("us", tz="UTC"))])
    keys = {"visits": ("id",)}
    fill_store(store_url, {"visits": pa.Table.from_pylist(rows, schema)}, keys)

    with closing(StoreReader.open(store_url)) as reader, reader.snapshot() as view:
        by_time = view.changed_since("visits", "at", view.published, frozenset({"r1"}))
        by_key = view.changed_since("visits", "id", view.published, frozenset({"r1"}))

    assert by_time is None
    assert by_key == {}


def test_sums_of_panes_are_those_of_their_rows() -> None:
    chance = random.Random(3)
    start, step = NOON + timedelta(seconds=7), timedelta(minutes=5)
    moments = sorted({chance.randrange(-600, 4_000) for _ in range(300)})
    at = [(start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)] * len(moments)
    starts = [base + second * 1_000_000 for base, second in zip(at, moments, strict=True)]
    amounts = [chance.randrange(10**20) for _ in starts]
    unknown = frozenset(chance.sample(starts, 2))
    panes = Panes(start - LONGEST, starts, [1] * len(starts), amounts, unknown, 2)
    expected: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    gone = set()
    for second, pane, amount in zip(moments, starts, amounts, strict=True):
        expected[second // 300][0] += 1
        expected[second // 300][1] += amount
        if pane in unknown:
            gone.add(second // 300)

    actual = panes.sums(_edges(start, step, 12))

    assert actual == [None if index in gone else tuple(expected[index]) for index in range(12)]


def test_figures_that_are_not_known_stay_so(store_url: str) -> None:
    orders = [Order(f"o{n}", "r1", "c1", NOON - timedelta(minutes=n), (("d1", 1),)) for n in (2, 8)]
    table = trend_of(orders, NOON)[TREND].sort_by("pane_started_at")
    at = table.schema.get_field_index("sales_amount")
    amounts = pa.array([None, Decimal("9.50")], table.schema.field(at).type)
    fill_store(store_url, {TREND: table.set_column(at, "sales_amount", amounts)}, KEYED)

    with closing(StoreReader.open(store_url)) as reader:
        with reader.snapshot() as view:
            before, known = view.published, read_panes(view, ("r1",), NOON - LONGEST)
        amounts = pa.array([None, Decimal("19.00")], table.schema.field(at).type)
        fill_store(store_url, {TREND: table.set_column(at, "sales_amount", amounts)}, KEYED, 2)
        with reader.snapshot() as view:
            followed = follow_panes(view, before, known, NOON)

    sums = followed["r1"].sums(_edges(NOON - timedelta(minutes=10), timedelta(minutes=5), 2))
    assert sums == [None, (1, 1_900)]


def _edges(start: datetime, step: timedelta, count: int) -> list[datetime]:
    return [start + step * number for number in range(count + 1)]
