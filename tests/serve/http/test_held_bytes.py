"""Who holds the most loses the oldest of it, as soon as all hold too much."""

from __future__ import annotations

from functools import partial

from livemart.serve.http.held_bytes import HeldBytes


def hold(held: HeldBytes, dropped: list[str], key: str, size: int) -> None:
    """Hold bytes of the owner whose name the key begins with."""
    held.hold(key, key[0], size, partial(dropped.append, key))


def test_who_holds_the_most_loses_what_was_held_for_longest() -> None:
    held, dropped = HeldBytes(100), list[str]()
    for key, size in (("a1", 10), ("b1", 30), ("b2", 40), ("c1", 20)):
        hold(held, dropped, key, size)
    assert dropped == [] and held.total == 100

    hold(held, dropped, "c2", 25)
    assert dropped == ["b1"] and held.total == 95
    # c holds the most now.
    hold(held, dropped, "a2", 20)

    assert dropped == ["b1", "c1"] and held.total == 95


def test_bytes_that_grow_keep_their_place_and_may_be_the_ones_that_go() -> None:
    held, dropped = HeldBytes(100), list[str]()
    hold(held, dropped, "a1", 10)
    hold(held, dropped, "a2", 10)
    hold(held, dropped, "b1", 70)
    hold(held, dropped, "a1", 20)
    assert dropped == []

    hold(held, dropped, "b1", 90)

    assert dropped == ["b1"] and held.total == 30
    # Bytes that were dropped may be released all the same.
    held.release("b1")
    held.release("a1")
    assert held.total == 10


def test_a_single_item_is_held_whatever_its_size() -> None:
    held, dropped = HeldBytes(100), list[str]()

    hold(held, dropped, "a1", 1_000)

    assert dropped == [] and held.total == 1_000
    hold(held, dropped, "b1", 1)
    assert dropped == ["a1"]


def test_what_several_hold_is_counted_once_until_the_last_of_them_has_done() -> None:
    held, dropped = HeldBytes(100), list[str]()

    with held.holding("p", "a", 60, partial(dropped.append, "p")):
        with held.holding("p", "b", 60, partial(dropped.append, "p")):
            assert held.total == 60
        assert held.total == 60
        with held.holding("q", "b", 50, partial(dropped.append, "q")):
            assert dropped == ["p"] and held.total == 50
    assert held.total == 0
