"""Fields that drift brought become columns, and leave the rescued ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.land.letters.drift import adopt, new_columns, rescued_fields
from livemart.land.records.schema import RESCUED_TYPE

RESCUED = [[("note", "hot"), ("tip", "2")], None, [("tip", None)], [("note", "cold")]]
ROWS = pa.table({"id": [1, 2, 3, 4], "_rescued_data": pa.array(RESCUED, RESCUED_TYPE)})


@pytest.mark.parametrize(
    "field", ["items[0].note", "a b", "a;b", "", "_note", "STATUS", "who.name", "`a.b`", "```a`"]
)
def test_a_field_that_no_column_can_be_named_after_stays_rescued(field: str) -> None:
    assert new_columns([field], ["status"]) == []


@pytest.mark.parametrize("field", ["1st", "naïve", "日本", "order", "it's", "a`b"])
def test_any_other_field_becomes_a_column(field: str) -> None:
    assert new_columns([field], ["status"]) == [field]


def test_of_names_that_differ_in_case_alone_one_becomes_a_column() -> None:
    assert new_columns(["tip", "Tip", "tip"], []) == ["Tip"]


def test_each_rescued_field_is_named_once() -> None:
    assert rescued_fields(ROWS) == ["note", "tip"]
    assert rescued_fields(ROWS.slice(1, 1)) == []


def test_an_adopted_field_moves_and_the_others_stay() -> None:
    adopted = adopt(ROWS, ["tip"])

    assert adopted.column("tip").to_pylist() == ["2", None, None, None]
    assert adopted.column("_rescued_data").to_pylist() == [
        [("note", "hot")],
        None,
        None,
        [("note", "cold")],
    ]
    assert adopt(ROWS, []) is ROWS
