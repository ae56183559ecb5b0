"""The record of a letter is what arrived: from the letter, else from its file, else gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from livemart.land.letters.originals import Originals
from livemart.land.records.judge import kept_text
from tests.unit.land.letters.stored_letters import letter

LONG = b'{"id": 2, "note": "' + b"x" * 20_000 + b'"}'
LATIN = b'{"id": "\xe9"}'


def letter_of(origin: str, record: bytes) -> dict[str, Any]:
    """Return the letter of a record as landing keeps it: a long one is cut."""
    return letter(1, origin=origin, record=kept_text(record), record_bytes=len(record))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.jsonl").write_bytes(b'{"id": 1}\n' + LONG + b"\n" + LATIN + b"\n")
    (tmp_path / "orders" / "1.csv").write_bytes(b'id,note\n1,a\n2,"b\n' + b"x" * 9_000 + b'"\n')
    return tmp_path


def test_a_record_is_read_again_where_its_letter_does_not_hold_it(landing: Path) -> None:
    letters = [
        letter_of("orders/1.jsonl:2", LONG),
        letter_of("orders/1.jsonl:3", LATIN),
        # Whole in its letter: its file may be gone.
        letter_of("orders/gone.jsonl:9", b'{"id": 9}'),
    ]

    originals = Originals(landing, "json", letters)

    assert [originals.record(it) for it in letters] == [LONG, LATIN, b'{"id": 9}']
    assert {originals.header(it) for it in letters} == {b""}


def test_a_record_that_is_not_there_any_more_is_none_and_never_another_one(landing: Path) -> None:
    letters = [
        letter_of("orders/gone.jsonl:2", LONG),
        # Its file was changed since.
        letter_of("orders/1.jsonl:2", LONG.replace(b"id", b"ID")),
        # It stands for a whole file.
        letter(1, origin="orders/1.jsonl", record=None, record_bytes=None),
    ]

    originals = Originals(landing, "json", letters)

    assert [originals.record(it) for it in letters] == [None] * 3


def test_a_record_of_csv_comes_with_the_header_of_its_file(landing: Path) -> None:
    record = b'2,"b\n' + b"x" * 9_000 + b'"'
    letters = [letter_of("orders/1.csv:3", record), letter_of("orders/gone.csv:3", b"3,c")]

    originals = Originals(landing, "csv", letters)

    assert [originals.record(it) for it in letters] == [record, b"3,c"]
    assert [originals.header(it) for it in letters] == [b"id,note", None]
