"""Who has only some rows is given the changes of exactly these."""

from __future__ import annotations

import math
from typing import Any

import pytest

from livemart.store.change_conditions import row_test, seen_as
from livemart.store.predicates import ColumnCondition as Where
from livemart.store.served import Change, Op, ServedModel

MODEL = ServedModel(
    "m", (("id", "int"), ("n", "bigint"), ("ratio", "double"), ("tags", "json")), ("id",), None
)
IS_LARGE = row_test(MODEL, [Where("n", "gt", 2**53 + 1)])


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
        found = seen_as(change, {"n": 1}, row_test(MODEL, [condition]))
        assert found is change
    assert seen_as(change, {"n": 1}, row_test(MODEL, [Where("ratio", "lt", math.nan)])) is None
    assert seen_as(change, {}, row_test(MODEL, [])) is change
