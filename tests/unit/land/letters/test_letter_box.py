"""All letters for records of a batch are one commit for each source schema, made once.

Each attempt commits the letters for files that no earlier one has committed. A stop for drift
writes letters with the reason, and removes them when the batch lands.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land.letters import letter_box
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.letter_box import DriftStop, FileLetters, LetterBox
from livemart.land.reasons import LetterReason
from livemart.land.records.schema import Stamp
from livemart.land.sources.delivery import DeliveryProblem
from livemart.land.tables import create_tables
from tests.deliveries import EVENTS, ORDERS
from tests.unit.land.letters.stored_letters import letter, table_of

STAMP = Stamp(3, datetime(2026, 3, 1, 12, tzinfo=UTC))
EMPTIED = DeliveryProblem("orders/1.jsonl", LetterReason.SOURCE_FILE_CHANGED, "is empty now")
TABLE = "bronze._dead_letters"
DRIFTED = letter(7, reason="SCHEMA_DRIFT", detail="field tip is not declared")


def fill(box: LetterBox, folder: Path) -> None:
    staged = Letters(folder)
    staged.add(table_of(letter(2)))
    box.put("Bronze", Letters(table_of(letter(1))))
    box.put("bronze", staged)
    box.put("raw", Letters(table_of(letter(3, source="raw.rates"))))
    box.put("empty", Letters(table_of()))


def test_letters_of_a_schema_are_committed_together_and_a_replay_adds_none(tmp_path: Path) -> None:
    warehouse, tags = Warehouse(tmp_path / "warehouse"), Tags("epoch", 7)
    for relation in ("bronze._dead_letters", "raw._dead_letters", "empty._dead_letters"):
        warehouse.create(relation, LETTERS)

    for replay in range(2):
        box = LetterBox(warehouse, tags.rows)
        fill(box, tmp_path / f"staged-{replay}")
        box.commit()

    bronze = warehouse.read("bronze._dead_letters").column("batch_id").to_pylist()
    assert sorted(bronze) == [1, 2]
    assert warehouse.read("raw._dead_letters").column("source").to_pylist() == ["raw.rates"]
    # Nothing to say, nothing written.
    assert not warehouse.is_tagged("empty._dead_letters", tags.rows("empty._dead_letters"))


def test_letters_of_any_size_are_one_commit_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_box, "_FILE_BYTES", 1)
    warehouse, tags = Warehouse(tmp_path / "warehouse"), Tags("epoch", 7)
    warehouse.create("bronze._dead_letters", LETTERS)
    folder = tmp_path / "warehouse" / "bronze" / "_dead_letters"
    before = warehouse.version("bronze._dead_letters")
    staged = Letters(tmp_path / "staged")
    for number in range(3):
        staged.add(table_of(letter(number)))
    box = LetterBox(warehouse, tags.rows)
    box.put("bronze", staged)

    whole = Warehouse.write
    fails: list[Any] = [whole, whole, Mock(side_effect=OSError("no disk"))]
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        patched.setattr(Warehouse, "write", lambda *given: fails.pop(0)(*given))
        box.commit()
    left = list(folder.glob("*.parquet"))
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        # After the commit, of which some are followed by a checkpoint.
        patched.setattr(Warehouse, "_committed", Mock(side_effect=OSError("no disk")))
        box.commit()
    box.commit()

    assert left == []
    assert len(list(folder.glob("*.parquet"))) == 3
    stored = warehouse.read("bronze._dead_letters").column("batch_id").to_pylist()
    assert sorted(stored) == [0, 1, 2]
    assert warehouse.version("bronze._dead_letters") == before + 1


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
    return sorted(warehouse.read(TABLE).column("origin").to_pylist())


def test_a_replay_adds_only_letters_that_were_not_there(warehouse: Warehouse) -> None:
    other = replace(EMPTIED, origin="orders/2.jsonl")

    assert attempt(warehouse, EMPTIED) == ["orders/1.jsonl"]
    assert attempt(warehouse, EMPTIED) == ["orders/1.jsonl"]
    assert attempt(warehouse, EMPTIED, other) == ["orders/1.jsonl", "orders/2.jsonl"]
    assert warehouse.version(TABLE) == 2


def test_each_source_that_reads_the_file_has_its_letter(warehouse: Warehouse) -> None:
    letters = FileLetters(warehouse, Tags("epoch", 3), STAMP)
    for source in (ORDERS, EVENTS):
        letters.put(source, EMPTIED)

    letters.commit()

    sources = warehouse.read(TABLE).column("source").to_pylist()
    assert sorted(sources) == [EVENTS.relation, ORDERS.relation]
    assert warehouse.version(TABLE) == 1


def test_a_batch_of_another_epoch_with_the_same_number_is_another_batch(
    warehouse: Warehouse,
) -> None:
    attempt(warehouse, EMPTIED)
    later = replace(STAMP, landed_at=STAMP.landed_at + timedelta(hours=1))

    assert attempt(warehouse, EMPTIED, epoch="next", stamp=later) == ["orders/1.jsonl"] * 2


def test_without_a_problem_nothing_is_committed(warehouse: Warehouse) -> None:
    assert attempt(warehouse) == []
    assert warehouse.version(TABLE) == 0


@pytest.fixture
def tables(tmp_path: Path) -> Warehouse:
    tables = Warehouse(tmp_path)
    tables.create(TABLE, LETTERS)
    return tables


def reasons(tables: Warehouse) -> list[str]:
    return sorted(tables.read(TABLE).column("reason").to_pylist())


def test_a_batch_without_drift_goes_on(tables: Warehouse) -> None:
    DriftStop(tables, Tags("e", 7)).check(ORDERS, Letters(table_of(letter(7))))

    assert reasons(tables) == []


def test_a_stop_leaves_the_letters_for_drift_once_and_names_a_record(tables: Warehouse) -> None:
    for _ in range(2):
        with pytest.raises(SourceError) as caught:
            DriftStop(tables, Tags("e", 7)).check(ORDERS, Letters(table_of(letter(7), DRIFTED)))

    assert caught.value.code == "SCHEMA_DRIFT"
    assert "bronze.orders: orders/1.jsonl:7: field tip is not declared" in str(caught.value)
    # The others come with the batch, when it lands.
    assert reasons(tables) == ["SCHEMA_DRIFT"]


def test_letters_of_this_stop_alone_are_taken_back(tables: Warehouse) -> None:
    earlier = letter(6, reason="SCHEMA_DRIFT")
    other = letter(7, reason="SCHEMA_DRIFT", source="bronze.order_events")
    tables.commit(TABLE, as_added(table_of(earlier, other, letter(7))), Tag("other", 1))
    stop = DriftStop(tables, Tags("e", 7))
    stop.withdraw([ORDERS])
    assert len(reasons(tables)) == 3
    with pytest.raises(SourceError):
        stop.check(ORDERS, Letters(table_of(DRIFTED)))

    for _ in range(2):
        stop.withdraw([ORDERS])

    rows = tables.read(TABLE).to_pylist()
    assert sorted((row["source"], row["reason"], row["batch_id"]) for row in rows) == [
        ("bronze.order_events", "SCHEMA_DRIFT", 7),
        ("bronze.orders", "SCHEMA_DRIFT", 6),
        ("bronze.orders", "TYPE_MISMATCH", 7),
    ]
