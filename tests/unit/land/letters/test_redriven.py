"""A mark is of one letter and no other, and the same file marks a letter once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import redriven
from livemart.land.letters.redriven import (
    forget_done,
    is_one_of,
    letter_key,
    mark,
    marks_of,
    marks_relation,
    near,
    unmarked,
)
from tests.unit.land.letters.stored_letters import NOON, letter, store, table_of

LETTERS = "bronze._dead_letters"
LETTER = letter(1)
# Each is another letter by one part of the key.
OTHERS = [
    letter(1, source="bronze.events"),
    letter(1, origin="orders/2.jsonl:1"),
    letter(1, reason="NULL_KEY"),
    letter(1, batch_id=2),
    letter(1, landed_at=NOON),
]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    store(warehouse, LETTERS, LETTER, *OTHERS)
    return warehouse


def test_a_mark_leaves_out_its_own_letter_alone(warehouse: Warehouse) -> None:
    letters = table_of(LETTER, *OTHERS)
    assert unmarked(warehouse, LETTERS, letters).num_rows == 6

    mark(warehouse, LETTERS, [LETTER], "orders/again.jsonl", NOON)

    assert unmarked(warehouse, LETTERS, letters).to_pylist() == OTHERS
    (row,) = marks_of(warehouse, LETTERS, letters).to_pylist()
    assert (row["file"], row["redriven_at"]) == ("orders/again.jsonl", NOON)
    assert letter_key(row) == letter_key(LETTER)


def test_a_file_that_is_handed_over_again_marks_nothing_twice(warehouse: Warehouse) -> None:
    for _ in range(2):
        mark(warehouse, LETTERS, [LETTER], "orders/again.jsonl", NOON)
    mark(warehouse, LETTERS, [LETTER], "orders/once-more.jsonl", NOON + timedelta(hours=1))

    marks = marks_of(warehouse, LETTERS, table_of(LETTER))

    assert sorted(marks.column("file").to_pylist()) == [
        "orders/again.jsonl",
        "orders/once-more.jsonl",
    ]


def test_rows_near_letters_hold_them_all() -> None:
    letters: list[dict[str, Any]] = [letter(2), letter(4)]
    rows = table_of(*(letter(number) for number in range(1, 6)))

    within = rows.filter(near(table_of(*letters)))

    assert within.column("batch_id").to_pylist() == [2, 3, 4]
    assert is_one_of(within, table_of(*letters)).to_pylist() == [True, False, True]


def test_letters_that_were_done_long_ago_go_with_their_marks_and_no_others(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriven, "_FORGOTTEN_AT_ONCE", 2)
    long_ago = NOON - timedelta(days=8)
    assert forget_done(warehouse, LETTERS, NOON) == 0
    mark(warehouse, LETTERS, [LETTER, *OTHERS[:2]], "orders/again.jsonl", long_ago)
    mark(warehouse, LETTERS, [LETTER], "orders/once-more.jsonl", long_ago)
    mark(warehouse, LETTERS, [OTHERS[2]], None, NOON)

    assert forget_done(warehouse, LETTERS, long_ago) == 0
    assert forget_done(warehouse, LETTERS, long_ago + timedelta(seconds=1)) == 3
    assert forget_done(warehouse, LETTERS, long_ago + timedelta(seconds=1)) == 0

    letters = warehouse.read(LETTERS)
    assert sorted(map(letter_key, letters.to_pylist())) == sorted(map(letter_key, OTHERS[2:]))
    assert warehouse.read(marks_relation(LETTERS)).column("redriven_at").to_pylist() == [NOON]
    assert unmarked(warehouse, LETTERS, letters).num_rows == len(OTHERS) - 3


def test_a_removal_that_was_cut_off_goes_on_with_the_marks_that_are_left(
    warehouse: Warehouse,
) -> None:
    mark(warehouse, LETTERS, [LETTER], None, NOON)
    marks = warehouse.read(marks_relation(LETTERS))
    forget_done(warehouse, LETTERS, NOON + timedelta(seconds=1))
    warehouse.commit(marks_relation(LETTERS), as_added(marks), Tag("again", 1))

    assert forget_done(warehouse, LETTERS, NOON + timedelta(seconds=1)) == 0
    assert warehouse.read(marks_relation(LETTERS)).num_rows == 0
    assert warehouse.read(LETTERS).num_rows == len(OTHERS)
