"""Letters are distinguished by their reason, and the first one is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.land.letters.dead_letters import LETTERS, of_file
from livemart.land.letters.held_letters import Letters
from livemart.land.reasons import LetterReason
from livemart.land.records.schema import Stamp
from livemart.land.records.worker import stage_tables
from livemart.storage.location import StoragePlace
from livemart.storage.scratch import empty_folder
from tests.storages import bucket_server, place  # noqa: F401

STAMP = Stamp(3, datetime(2026, 3, 1, 12, tzinfo=UTC))


ROWS = [
    of_file("bronze.orders", name, reason, f"{name} is wrong", STAMP)
    for name, reason in (
        ("1.jsonl", LetterReason.TOO_LATE),
        ("2.jsonl", LetterReason.SCHEMA_DRIFT),
        ("3.jsonl", LetterReason.SCHEMA_DRIFT),
    )
]


def staged(folder: Path) -> Letters:
    letters = Letters(folder / "letters")
    for rows in ROWS:
        letters.add(rows)
    return letters


@pytest.mark.parametrize("held", [lambda _: Letters(pa.concat_tables(ROWS)), staged])
def test_letters_of_one_reason_are_found_among_others(
    tmp_path: Path, held: Callable[[Path], Letters]
) -> None:
    letters = held(tmp_path)

    drifted = letters.of(LetterReason.SCHEMA_DRIFT)

    assert (letters.count, drifted.count) == (3, 2)
    assert drifted.first() == ("2.jsonl", "2.jsonl is wrong")
    assert letters.of(LetterReason.NULL_KEY).count == 0
    assert letters.table() == pa.concat_tables(ROWS)
    assert drifted.table() == pa.concat_tables(ROWS[1:])


def test_without_letters_nothing_is_staged(tmp_path: Path) -> None:
    letters = Letters(tmp_path / "letters")
    letters.add(LETTERS.empty_table())

    assert (letters.count, letters.table().num_rows) == (0, 0)
    assert not (tmp_path / "letters").exists()


def test_letters_that_workers_have_staged_are_read_wherever_they_are(
    place: StoragePlace,  # noqa: F811
) -> None:
    folder = empty_folder(place / "letters")
    for number, rows in enumerate(ROWS):
        stage_tables(folder, number, LETTERS, [rows])

    letters = Letters(folder)

    assert letters.count == 3
    assert pa.Table.from_batches(letters.batches()).equals(pa.concat_tables(ROWS))
    assert letters.of(LetterReason.SCHEMA_DRIFT).first() == ("2.jsonl", "2.jsonl is wrong")
