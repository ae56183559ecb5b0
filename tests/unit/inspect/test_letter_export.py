"""A line of an export is read back as the bytes that it was written from; a wrong one is named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.inspect.letter_export import exported_letters, named_letters, read_exported
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.redriven import letter_key, mark
from livemart.land.redrive import RedriveCounts
from tests.deliveries import source
from tests.unit.land.letters.stored_letters import NOON, letter, store

TABLE = "bronze._dead_letters"
SOURCES = {"bronze.orders": source("orders", {"id": "string"})}
FIRST, SECOND = letter(1), letter(2)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path / "warehouse")
    store(warehouse, TABLE, FIRST, SECOND)
    return warehouse


def export(warehouse: Warehouse) -> list[str]:
    counts = RedriveCounts()
    return list(exported_letters(warehouse, Path(), SOURCES, LetterChoice(), counts))


def test_what_is_exported_names_its_letters_again(warehouse: Warehouse) -> None:
    lines = export(warehouse)

    contents = read_exported(["", *lines, "  \n"])

    assert contents == {
        letter_key(each): (each["record"].encode(), None) for each in (FIRST, SECOND)
    }
    assert named_letters(warehouse, contents) == {TABLE: [FIRST, SECOND]}


def test_a_record_that_is_no_text_and_a_header_keep_their_bytes(warehouse: Warehouse) -> None:
    line = json.loads(export(warehouse)[0])
    del line["record"]
    line |= {"record_base64": base64.b64encode(b"\xff\0").decode(), "header": "id,\udce9"}

    ((content, header),) = read_exported([json.dumps(line)]).values()

    assert (content, header) == (b"\xff\0", b"id,\xe9")


def test_every_line_that_is_none_is_named(warehouse: Warehouse) -> None:
    line, _ = export(warehouse)
    broken: list[Any] = [line, "{", line, json.dumps({"source": "x"}), "[1]"]

    with pytest.raises(ConfigError) as caught:
        read_exported(broken)

    message = str(caught.value)
    assert "line 2: JSONDecodeError" in message and "line 4: KeyError" in message
    assert "line 3: the letter of orders/1.jsonl:1 a second time" in message
    assert "line 5: TypeError" in message and "line 1:" not in message


def test_a_line_of_another_letter_is_refused_and_one_that_was_handed_over_is_left_out(
    warehouse: Warehouse,
) -> None:
    mark(warehouse, TABLE, [FIRST], "orders/again.jsonl", NOON)
    known = {letter_key(FIRST): b"", letter_key(SECOND): b""}

    assert named_letters(warehouse, known) == {TABLE: [SECOND]}
    with pytest.raises(ConfigError, match=r"no such letter: bronze\.orders orders/9\.jsonl:1"):
        named_letters(warehouse, {letter_key(letter(1, origin="orders/9.jsonl:1")): b""})
