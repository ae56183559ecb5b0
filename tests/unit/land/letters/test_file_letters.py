"""A letter for a file is committed once, however often its batch is tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.file_letters import FileLetters
from livemart.land.reasons import LetterReason
from livemart.land.records.schema import Stamp
from livemart.land.sources.delivery import DeliveryProblem
from livemart.land.tables import create_tables
from tests.deliveries import EVENTS, ORDERS

LETTERS = "bronze._dead_letters"
STAMP = Stamp(3, datetime(2026, 3, 1, 12, tzinfo=UTC))
EMPTIED = DeliveryProblem("orders/1.jsonl", LetterReason.SOURCE_FILE_CHANGED, "is empty now")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [ORDERS, EVENTS], "epoch")
    return warehouse


def attempt(
    warehouse: Warehouse, *problems: DeliveryProblem, epoch: str = "epoch", stamp: Stamp = STAMP
) -> list[str]:
    """Commit the letters of an attempt at the batch; return the files of all letters."""
    letters = FileLetters(warehouse, Tags(epoch, stamp.batch_id), stamp)
    for problem in problems:
        letters.put(ORDERS, problem)
    letters.commit()
    return sorted(warehouse.read(LETTERS).column("origin").to_pylist())


def test_a_replay_adds_only_letters_that_were_not_there(warehouse: Warehouse) -> None:
    other = replace(EMPTIED, origin="orders/2.jsonl")

    assert attempt(warehouse, EMPTIED) == ["orders/1.jsonl"]
    assert attempt(warehouse, EMPTIED) == ["orders/1.jsonl"]
    assert attempt(warehouse, EMPTIED, other) == ["orders/1.jsonl", "orders/2.jsonl"]
    assert warehouse.version(LETTERS) == 2


def test_each_source_that_reads_the_file_has_its_letter(warehouse: Warehouse) -> None:
    letters = FileLetters(warehouse, Tags("epoch", 3), STAMP)
    for source in (ORDERS, EVENTS):
        letters.put(source, EMPTIED)

    letters.commit()

    sources = warehouse.read(LETTERS).column("source").to_pylist()
    assert sorted(sources) == [EVENTS.relation, ORDERS.relation]
    assert warehouse.version(LETTERS) == 1


def test_a_batch_of_another_epoch_with_the_same_number_is_another_batch(
    warehouse: Warehouse,
) -> None:
    attempt(warehouse, EMPTIED)
    later = replace(STAMP, landed_at=STAMP.landed_at + timedelta(hours=1))

    assert attempt(warehouse, EMPTIED, epoch="next", stamp=later) == ["orders/1.jsonl"] * 2


def test_without_a_problem_nothing_is_committed(warehouse: Warehouse) -> None:
    assert attempt(warehouse) == []
    assert warehouse.version(LETTERS) == 0
