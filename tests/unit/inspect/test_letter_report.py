"""Dead letters are counted by source and reason, and shown whatever is in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.inspect.letter_report import describe_letters, letter_choice, render_letters
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.dead_letters import LETTERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _letter(source: str, code: str, batch: int, record: str | None = "{}") -> dict[str, object]:
    return {
        "source": source,
        "origin": f"orders/{batch}.jsonl#1",
        "reason": code,
        "detail": "amount: found 'x'",
        "record": record,
        "record_bytes": None if record is None else len(record.encode()),
        "batch_id": batch,
        "landed_at": NOON + timedelta(minutes=batch),
    }


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    letters = {
        "bronze": [
            _letter("bronze.orders", "TYPE_MISMATCH", 1),
            _letter("bronze.orders", "TYPE_MISMATCH", 3, "a\nb\x1b[2J"),
            _letter("bronze.dishes", "KEY_MISSING", 2),
        ],
        "raw": [_letter("raw.rates", "SOURCE_FILE_CHANGED", 4, None)],
    }
    for schema, rows in letters.items():
        relation = f"{schema}._dead_letters"
        table = pa.Table.from_pylist(rows, schema=LETTERS)
        Warehouse(tmp_path).overwrite(relation, table, Tag(f"e/{relation}/0", 1, {}))
    return tmp_path


def test_letters_of_all_schemas_are_counted_and_the_newest_shown_first(warehouse: Path) -> None:
    report = describe_letters(warehouse, limit=3)

    assert [(row["source"], row["reason"], row["letters"]) for row in report["counts"]] == [
        ("bronze.dishes", "KEY_MISSING", 1),
        ("bronze.orders", "TYPE_MISMATCH", 2),
        ("raw.rates", "SOURCE_FILE_CHANGED", 1),
    ]
    assert [letter["batch_id"] for letter in report["letters"]] == [4, 3, 2]
    assert report["total"] == 4


def test_they_are_chosen_by_source_and_reason(warehouse: Path) -> None:
    assert (
        describe_letters(warehouse, letter_choice(warehouse, LetterChoice(source="orders")))[
            "total"
        ]
        == 2
    )
    never = letter_choice(warehouse, LetterChoice(source="bronze.orders", reason="NULL_SEQUENCE"))
    assert describe_letters(warehouse, never)["total"] == 0
    report = describe_letters(
        warehouse, letter_choice(warehouse, LetterChoice(reason="TYPE_MISMATCH")), limit=1
    )
    assert [letter["origin"] for letter in report["letters"]] == ["orders/3.jsonl#1"]
    with pytest.raises(ConfigError, match="LETTER_SOURCE_UNKNOWN"):
        letter_choice(warehouse, LetterChoice(source="orderz"))


def test_a_terminal_gets_text_that_it_does_not_obey(warehouse: Path) -> None:
    text = render_letters(
        describe_letters(
            warehouse, letter_choice(warehouse, LetterChoice(source="orders")), limit=1
        )
    )

    assert text.splitlines()[3:7] == [
        "bronze.orders  TYPE_MISMATCH",
        "  landed  2026-03-01 12:03:00 UTC, batch 3",
        "  origin  orders/3.jsonl#1",
        "  detail  amount: found 'x'",
    ]
    assert "  record  a\\nb\\x1b[2J" in text
    assert "the newest 1 of 2; --limit shows more" in text


def test_a_warehouse_without_letters_says_so(tmp_path: Path) -> None:
    assert render_letters(describe_letters(tmp_path)) == "no dead letters"
