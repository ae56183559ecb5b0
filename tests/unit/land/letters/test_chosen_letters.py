"""A choice leaves in what it names, in every table of letters, and nothing that was re-driven."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.land.letters.chosen_letters import (
    LetterChoice,
    letter_relations,
    read_letters,
    whole_letters,
)
from livemart.land.letters.redriven import mark
from tests.unit.land.letters.stored_letters import NOON, letter, store

BRONZE, RAW = "bronze._dead_letters", "raw._dead_letters"
RATE = letter(4, source="raw.rates", origin="rates/1.csv:4")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    store(warehouse, BRONZE, letter(1), letter(2, reason="NULL_KEY"), letter(3))
    store(warehouse, RAW, RATE)
    mark(warehouse, BRONZE, [letter(3)], "orders/again.jsonl", NOON)
    return warehouse


def chosen(warehouse: Warehouse, choice: LetterChoice) -> dict[str, list[int]]:
    return {
        relation: sorted(letters.column("batch_id").to_pylist())
        for relation, letters in whole_letters(warehouse, choice)
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (LetterChoice(), {BRONZE: [1, 2], RAW: [4]}),
        (LetterChoice(with_redriven=True), {BRONZE: [1, 2, 3], RAW: [4]}),
        (LetterChoice(source="raw.rates"), {RAW: [4]}),
        (LetterChoice(reason="NULL_KEY"), {BRONZE: [2]}),
        (LetterChoice(since=NOON + timedelta(minutes=2)), {BRONZE: [2], RAW: [4]}),
        (LetterChoice(until=NOON + timedelta(minutes=2)), {BRONZE: [1]}),
        (LetterChoice(source="bronze.other"), {}),
    ],
)
def test_a_choice_is_made_in_every_table(
    warehouse: Warehouse, choice: LetterChoice, expected: dict[str, list[int]]
) -> None:
    assert letter_relations(warehouse) == [BRONZE, RAW]
    assert chosen(warehouse, choice) == expected


def test_a_choice_of_nothing_has_the_columns_all_the_same(warehouse: Warehouse) -> None:
    none = read_letters(warehouse, BRONZE, LetterChoice(reason="TOO_LATE"), ["origin", "reason"])

    assert (none.num_rows, none.column_names) == (0, ["origin", "reason"])


@pytest.mark.parametrize(
    ("choice", "is_about"),
    [
        (LetterChoice(), True),
        (LetterChoice(source="bronze.orders", reason="NULL_KEY"), True),
        (LetterChoice(source="raw.rates"), False),
        (LetterChoice(reason="TOO_LATE"), False),
    ],
)
def test_what_a_choice_is_about_is_known_without_a_row(
    choice: LetterChoice, is_about: bool
) -> None:
    assert choice.is_about("bronze.orders", "NULL_KEY") is is_about
