"""Changes come in pages of whole snapshots, from positions that the store can follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition as Where
from livemart.store.reader import StoreReader
from livemart.store.seen_changes import row_test, seen_as
from livemart.store.served import Change, Op, ServedModel
from tests.serve.owner.order_versions import fill, orders
from tests.store.stores import changes_of

MODEL = ServedModel(
    "m", (("id", "int"), ("n", "bigint"), ("ratio", "double"), ("tags", "json")), ("id",), None
)
IS_LARGE = row_test(MODEL, [Where("n", "gt", 2**53 + 1)], "sqlite")


def test_a_page_ends_between_two_snapshots_whatever_its_limit(
    store_url: str, reader: StoreReader
) -> None:
    """Each snapshot changes the first so many of its five orders."""
    for number, count in enumerate((5, 3, 1, 0, 4, 2), start=1):
        fill(store_url, orders(*[number] * count, *[0] * (5 - count)), number)
    (*whole,) = changes_of(reader, "orders", 1, None, 100).changes
    sizes = {number: len(list(each)) for number, each in groupby(whole, _snapshot_of)}

    for limit in range(1, len(whole) + 2):
        position, pages = 1, list[Sequence[Change]]()
        while position != 6:
            page = changes_of(reader, "orders", position, None, limit)
            assert page.kind == "changes" and page.upto > position
            position = page.upto
            pages.append(page.changes)
        for changes in pages:
            for number, each in groupby(changes, _snapshot_of):
                assert len(list(each)) == sizes[number]
            assert len(changes) <= limit or len({_snapshot_of(it) for it in changes}) == 1
        assert [change for changes in pages for change in changes] == whole


def _snapshot_of(change: Change) -> int:
    return change.snapshot_id


@pytest.mark.parametrize(
    ("after", "is_marked", "kind"),
    [
        (2, True, "changes"),
        # Copied whole with the second snapshot: what was before is not known.
        (1, True, "reset"),
        (3, True, "changes"),
        # Not there yet, or no more.
        (4, True, "reset"),
        (0, True, "reset"),
        (2, False, "reset"),
        (3, False, "reset"),
    ],
)
def test_changes_are_told_from_positions_that_the_store_can_follow(
    store_url: str, reader: StoreReader, after: int, is_marked: bool, kind: str
) -> None:
    fill(store_url, orders(1), 1)
    for number in (2, 3):
        model = {"orders": "another"}
        fill(store_url, orders(*range(number)), number, fingerprints=model)
    mark = None if is_marked else "00000000"

    page = changes_of(reader, "orders", after, None, 100, mark)

    assert page.kind == kind
    assert len(page.changes) == (1 if kind == "changes" and after == 2 else 0)
    # With a reset all rows are read next, and then the changes behind them.
    assert page.upto == 3
    again = changes_of(reader, "orders", page.upto, None, 100, page.mark)
    assert (again.kind, again.changes, again.mark) == ("changes", (), page.mark)


def test_a_page_that_may_not_be_read_here_is_many_and_one_inside_a_snapshot_has_the_rest(
    store_url: str, reader: StoreReader
) -> None:
    for number, count in enumerate((5, 3, 4), start=1):
        fill(store_url, orders(*[number] * count, *[0] * (5 - count)), number)
    whole = changes_of(reader, "orders", 1, None, 100)

    with reader.snapshot() as view:
        start = Position(1, whole.mark_before)
        found = [view.changes("orders", start, None, 100, most=most) for most in (2, 8, 9)]
        assert [(page.kind, page.read, page.upto) for page in found] == [
            ("many", 0, 1),
            ("many", 0, 1),
            ("changes", 9, 3),
        ]
        assert (found[0].changes, found[2]) == ((), whole)
        for place, change in enumerate(whole.changes):
            inside = Position(1, whole.mark_before, change.snapshot_id, change.position)
            rest = view.changes("orders", inside, None, 100)
            assert (rest.changes, rest.upto) == (whole.changes[place + 1 :], whole.upto)


@pytest.mark.parametrize(
    ("op", "before", "after", "seen"),
    [
        ("insert", None, str(2**53 + 2), "insert"),
        ("insert", None, 7, None),
        ("update", "9007199254740994", "9007199254740995", "update"),
        ("update", 1, "9007199254740995", "insert"),
        ("update", "9007199254740994", 1, "delete"),
        ("update", "9007199254740994", None, "delete"),
        ("update", 1, 2, None),
        ("delete", None, "9007199254740994", "delete"),
        ("delete", None, str(2**53 + 1), None),
    ],
)
def test_a_row_that_begins_to_fulfil_conditions_is_inserted_and_one_that_ends_is_deleted(
    op: Op, before: Any, after: Any, seen: str | None
) -> None:
    change = Change("m", 7, 3, op, {"id": 1, "n": after, "ratio": 0.5, "tags": None})

    found = seen_as(change, {"n": before} if op == "update" else None, IS_LARGE)

    assert (found and found.op) == seen
    if found is not None:
        shown = before if (op, seen) == ("update", "delete") else after
        assert found.row == {"id": 1, "n": shown, "ratio": 0.5, "tags": None}
        assert (found.model, found.snapshot_id, found.position) == ("m", 7, 3)


def test_values_that_an_update_did_not_replace_count_on_both_sides() -> None:
    change = Change("m", 7, 0, "update", {"id": 1, "n": 2, "ratio": "NaN", "tags": ["a"]})

    for condition in (Where("ratio", "gte", math.inf), Where("tags", "is", False)):
        found = seen_as(change, {"n": 1}, row_test(MODEL, [condition], "sqlite"))
        assert found is change
    is_less = row_test(MODEL, [Where("ratio", "lt", math.nan)], "sqlite")
    assert seen_as(change, {"n": 1}, is_less) is None
    assert seen_as(change, {}, row_test(MODEL, [], "sqlite")) is change


@pytest.mark.parametrize("condition", [Where("name", "eq", "a\0"), Where("name", "in", ("a\0",))])
@pytest.mark.parametrize(("dialect_name", "held"), [("sqlite", "a\0"), ("postgresql", "a\ufffd")])
def test_a_text_with_nul_is_looked_for_as_the_database_holds_it(
    condition: Where, dialect_name: str, held: str
) -> None:
    served = ServedModel("m", (("name", "string"),), (), None)

    fulfils = row_test(served, [condition], dialect_name)

    assert fulfils({"name": held})
    assert not fulfils({"name": "a"})
