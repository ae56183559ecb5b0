"""Letters that call their reason `code` are read as they are, and renamed by who writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.inspect.letter_export import chosen_rows, named_letters, read_exported
from livemart.inspect.letter_report import describe_letters
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.redriven import MARKS
from livemart.land.redrive import Redrive, redrive
from tests.deliveries import NOON, Shop, source

NOTES = source("notes", {"id": "string", "n": "int"}, path="notes/*.jsonl")
TABLE, MARKED = "bronze._dead_letters", "bronze._redriven_letters"
TAGS = Tags("direct", 0)
RECORDS = ['{"id":"a","n":"x"}', '{"id":"b","n":"y"}', "{broken"]
# What `dead-letters export` wrote of the second.
EXPORTED = json.dumps(
    {
        "source": "bronze.notes",
        "origin": "notes/1.jsonl:2",
        "reason": "TYPE_MISMATCH",
        "batch_id": 0,
        "landed_at": "2026-03-01T12:00:00+00:00",
        "detail": "n",
        "record": '{"id":"b","n":2}',
    }
)


def before(schema: pa.Schema) -> pa.Schema:
    """Return the columns as they were called."""
    return pa.schema(
        [field.with_name("code") if field.name == "reason" else field for field in schema]
    )


def put(warehouse: Warehouse, relation: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    warehouse.create(relation, before(schema))
    table = pa.Table.from_pylist(rows, schema=before(schema))
    warehouse.commit(relation, as_added(table), TAGS.rows(relation))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Three letters of batch 0, the first of which was handed over again."""
    warehouse = Warehouse(tmp_path / "warehouse")
    letters = [
        {
            "source": "bronze.notes",
            "origin": f"notes/1.jsonl:{number}",
            "code": "MALFORMED_RECORD" if number == 3 else "TYPE_MISMATCH",
            "detail": "n",
            "record": record,
            "record_bytes": len(record),
            "batch_id": 0,
            "landed_at": NOON,
        }
        for number, record in enumerate(RECORDS, 1)
    ]
    put(warehouse, TABLE, LETTERS, letters)
    names = ("source", "origin", "code", "batch_id", "landed_at")
    done = {name: letters[0][name] for name in names} | {"redriven_at": NOON, "file": "notes/r"}
    put(warehouse, MARKED, MARKS, [done])
    return warehouse


def test_readers_take_the_name_that_is_stored_and_write_nothing(warehouse: Warehouse) -> None:
    report = describe_letters(warehouse.root)
    chosen = describe_letters(warehouse.root, LetterChoice(reason="TYPE_MISMATCH"))
    every = describe_letters(warehouse.root, LetterChoice(with_redriven=True))

    assert [(it["reason"], it["letters"]) for it in report["counts"]] == [
        ("MALFORMED_RECORD", 1),
        ("TYPE_MISMATCH", 1),
    ]
    assert [it["record"] for it in chosen["letters"]] == [RECORDS[1]]
    assert [it["redriven_in"] for it in every["letters"]] == ["notes/r", None, None]
    assert [warehouse.version(name) for name in (TABLE, MARKED)] == [1, 1]


def test_landing_renames_the_column_before_its_first_letter(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    table_id, stored = warehouse.table_id(TABLE), warehouse.read(TABLE)
    properties = DeltaTable(str(warehouse.path(TABLE))).metadata().configuration

    shop = Shop(None, tmp_path, [NOTES])

    assert shop.warehouse.version(TABLE) == 2
    assert shop.warehouse.read(TABLE).equals(stored.rename_columns(LETTERS.names))
    # What was committed for a batch is not committed again.
    assert shop.warehouse.is_tagged(TABLE, TAGS.rows(TABLE))
    assert shop.warehouse.table_id(TABLE) == table_id
    assert DeltaTable(str(warehouse.path(TABLE))).metadata().configuration == properties
    shop.restart()
    assert shop.warehouse.version(TABLE) == 2
    shop.land(1, shop.deliver("notes/2.jsonl", ['{"id":"c","n":"z"}']))
    assert [it["record"] for it in describe_letters(warehouse.root)["letters"]] == [
        '{"id":"c","n":"z"}',
        RECORDS[1],
        RECORDS[2],
    ]


def test_a_table_without_letters_is_renamed_as_well(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.create(TABLE, before(LETTERS))

    shop = Shop(None, tmp_path, [NOTES])

    assert shop.warehouse.arrow_schema(TABLE).names == LETTERS.names


@pytest.mark.parametrize("is_renamed", [False, True])
def test_letters_and_exports_of_before_are_redriven_once(
    warehouse: Warehouse, tmp_path: Path, is_renamed: bool
) -> None:
    landing = tmp_path / "landing"
    if is_renamed:
        Shop(None, tmp_path, [NOTES])
    contents = read_exported([EXPORTED])

    with Redrive(warehouse, landing).begun():
        letters: Any = named_letters(warehouse, contents)
        first = redrive(warehouse, landing, {NOTES.relation: NOTES}, letters, contents, NOON)
        rest: Any = chosen_rows(warehouse, LetterChoice())
        second = redrive(warehouse, landing, {NOTES.relation: NOTES}, rest, {}, NOON)

    assert (first.records, second.records) == (1, 1)
    assert sorted(path.read_text() for path in landing.glob("notes/*")) == [
        '{"id":"b","n":2}\n',
        "{broken\n",
    ]
    assert describe_letters(warehouse.root)["total"] == 0
    assert warehouse.arrow_schema(MARKED).names == MARKS.names
    assert warehouse.row_count(MARKED) == 3
