"""Letters are told apart by their reason, and the first of them is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from livemart.land.commit_note import Stamp
from livemart.land.letters.dead_letters import of_file
from livemart.land.letters.held_letters import RowLetters
from livemart.land.reasons import LetterReason

STAMP = Stamp(3, datetime(2026, 3, 1, 12, tzinfo=UTC))


def test_letters_of_one_reason_are_found_among_others() -> None:
    letters = RowLetters(
        pa.concat_tables(
            of_file("bronze.orders", name, reason, f"{name} is wrong", STAMP)
            for name, reason in (
                ("1.jsonl", LetterReason.TOO_LATE),
                ("2.jsonl", LetterReason.SCHEMA_DRIFT),
                ("3.jsonl", LetterReason.SCHEMA_DRIFT),
            )
        )
    )

    drifted = letters.of(LetterReason.SCHEMA_DRIFT)

    assert (letters.count, drifted.count) == (3, 2)
    assert drifted.first() == ("2.jsonl", "2.jsonl is wrong")
    assert letters.of(LetterReason.NULL_KEY).count == 0
