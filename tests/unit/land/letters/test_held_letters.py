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
