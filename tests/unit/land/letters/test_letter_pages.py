"""Letters are counted and paged newest first, whatever their number, tables and marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import chosen_letters, redriven
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.letter_pages import LetterPage, read_letter_page
from livemart.land.letters.redriven import mark
from livemart.land.records.judge import kept_text

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BRONZE, RAW = "bronze._dead_letters", "raw._dead_letters"


def letter(number: int, **fields: Any) -> dict[str, Any]:
    """Return a letter; two numbers of a ten are of one batch."""
    batch = number // 10
    return {
        "source": "bronze.orders",
        "origin": f"orders/{'x' * 100}{batch}.jsonl:{number:03}",
        "reason": "TYPE_MISMATCH" if number % 2 else "NULL_KEY",
        "detail": "amount: found 'x'",
        "record": f"{number}",
        "record_bytes": len(f"{number}"),
        "batch_id": batch,
        "landed_at": NOON + timedelta(minutes=batch),
    } | fields


def store(warehouse: Warehouse, relation: str, letters: Sequence[dict[str, Any]]) -> None:
    """Commit letters batch by batch, as landing does."""
    warehouse.create(relation, LETTERS)
    for batch in sorted({it["batch_id"] for it in letters}):
        rows = [it for it in letters if it["batch_id"] == batch]
        table = pa.Table.from_pylist(rows, schema=LETTERS)
        warehouse.commit(relation, as_added(table), Tag(f"e/{relation}/0", batch))


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Thirty-five letters in two tables, read a few at a time."""
    for module in (chosen_letters, redriven):
        monkeypatch.setattr(module, "MOST_KEYS", 4)
    warehouse = Warehouse(tmp_path)
    store(warehouse, BRONZE, [letter(number) for number in range(30)])
    store(warehouse, RAW, [letter(number, source="raw.rates") for number in range(15, 20)])
    return warehouse


def pages(warehouse: Warehouse, choice: LetterChoice, limit: int) -> list[LetterPage]:
    """Return all pages."""
    found = [read_letter_page(warehouse, choice, limit=limit)]
    while found[-1].last is not None:
        found.append(read_letter_page(warehouse, choice, limit=limit, after=found[-1].last))
    return found


@pytest.mark.parametrize("limit", [1, 4, 7, 34, 35, 36])
def test_pages_hold_every_letter_once_and_the_newest_first(
    warehouse: Warehouse, limit: int
) -> None:
    expected = sorted(
        [("bronze.orders", number) for number in range(30)]
        + [("raw.rates", number) for number in range(15, 20)],
        key=lambda it: (-(it[1] // 10), it),
    )

    found = pages(warehouse, LetterChoice(), limit)

    letters = [it for page in found for it in page.letters]
    assert [(it.source, int(it.record or "")) for it in letters] == expected
    assert [len(page.letters) for page in found[:-1]] == [limit] * (len(found) - 1)
    assert {page.total for page in found} == {35}


def test_counts_are_of_the_chosen_letters_and_the_overview_of_all_in_the_span(
    warehouse: Warehouse,
) -> None:
    since = NOON + timedelta(minutes=1)
    page = read_letter_page(
        warehouse, LetterChoice("bronze.orders", "NULL_KEY", since=since), limit=3
    )

    assert [(it.source, it.reason, it.letters) for it in page.counts] == [
        ("bronze.orders", "NULL_KEY", 10)
    ]
    assert (page.counts[0].first_seen, page.counts[0].last_seen) == (
        since,
        since + timedelta(minutes=1),
    )
    assert [(it.source, it.reason, it.letters) for it in page.overview] == [
        ("bronze.orders", "NULL_KEY", 10),
        ("bronze.orders", "TYPE_MISMATCH", 10),
        ("raw.rates", "NULL_KEY", 2),
        ("raw.rates", "TYPE_MISMATCH", 3),
    ]
    assert [it.record for it in page.letters] == ["20", "22", "24"]


def test_letters_that_were_redriven_are_left_out_or_say_so(warehouse: Warehouse) -> None:
    done = [letter(number) for number in range(0, 30, 3)]
    mark(warehouse, BRONZE, done, "orders/redrive-1.jsonl", NOON)

    left = [
        it for page in pages(warehouse, LetterChoice("bronze.orders"), 6) for it in page.letters
    ]
    every = read_letter_page(
        warehouse, LetterChoice("bronze.orders", with_redriven=True), limit=100
    )

    assert sorted(int(it.record or "") for it in left) == [it for it in range(30) if it % 3]
    assert (read_letter_page(warehouse, LetterChoice(), limit=0).total, every.total) == (25, 30)
    marked = {it.record: (it.redriven_at, it.redriven_in) for it in every.letters}
    assert marked["27"] == (NOON, "orders/redrive-1.jsonl")
    assert marked["28"] == (None, None)


def test_a_record_that_is_not_kept_whole_says_so(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    store(
        warehouse,
        BRONZE,
        [
            letter(0, record="é" * 10, record_bytes=20),
            letter(1, record="é" * 10, record_bytes=21),
            letter(2, record=None, record_bytes=None),
            # Escaped: the text of the part is longer than the record.
            letter(3, record=kept_text(b"\0" * 9_000), record_bytes=9_000),
            letter(4, record=kept_text(b"\0"), record_bytes=1),
        ],
    )

    page = read_letter_page(warehouse, LetterChoice(), limit=9)

    assert [it.is_cut for it in page.letters] == [False, True, False, True, False]


def test_without_a_table_there_is_no_letter(tmp_path: Path) -> None:
    page = read_letter_page(Warehouse(tmp_path), LetterChoice(), limit=5)

    assert (page.total, page.overview, page.letters, page.last) == (0, [], [], None)
