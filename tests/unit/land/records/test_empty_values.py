"""Writers without types send empty texts for missing values, and [] for empty objects."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from livemart.project.graph import RecordRules
from tests.unit.land.records.rows import codes, good, group_of, read

COLUMNS = {
    "id": "string",
    "quantity": "int",
    "price": "decimal(6,2)",
    "weight": "double",
    "is_paid": "boolean",
    "sold_on": "date",
    "sold_at": "timestamp",
    "tags": "array<int>",
    "place": "struct<city:string,floor:int>",
    "notes": "map<string,string>",
}
CSV = group_of(COLUMNS, "csv")
JSON = group_of(COLUMNS)
OTHERS = [name for name in COLUMNS if name != "id"]


def test_a_csv_that_quotes_everything_has_nulls(tmp_path: Path) -> None:
    content = ",".join(COLUMNS) + "\n" + ",".join(['""'] * len(COLUMNS)) + "\n"

    table = read(CSV, tmp_path / "a.csv", content)

    # An empty text is a text; of all others it is no value.
    assert good(table, "id") == [""]
    assert good(table, *OTHERS) == [(None,) * len(OTHERS)]


def test_json_of_a_writer_without_types_has_nulls_and_empty_objects(tmp_path: Path) -> None:
    record: dict[str, object] = dict.fromkeys(COLUMNS, "")
    nested = {"id": "b", "place": [], "notes": [], "tags": [1, ""]}

    table = read(JSON, tmp_path / "a.jsonl", f"{json.dumps(record)}\n{json.dumps(nested)}\n")

    assert good(table, "id", *OTHERS)[0] == ("", *[None] * len(OTHERS))
    assert good(table, "place", "notes", "tags")[1] == (
        {"city": None, "floor": None},
        [],
        [1, None],
    )


def test_many_lines_of_which_some_have_no_date_are_read_alike(tmp_path: Path) -> None:
    group = group_of({"id": "string", "sold_at": "timestamp", "sold_on": "date"})
    lines = [
        {"id": str(number), "sold_at": "2026-03-01T12:00:00Z" if number % 2 else "", "sold_on": ""}
        for number in range(100)
    ]

    table = read(group, tmp_path / "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert Counter(good(table, "sold_at", "sold_on")) == {(noon, None): 50, (None, None): 50}


def test_who_wants_it_strict_gets_dead_letters_that_show_the_empty_text(tmp_path: Path) -> None:
    rules = RecordRules("csv", empty_is_null=False)
    strict = replace(group_of({"id": "string", "quantity": "int"}), record_rules=rules)

    table = read(strict, tmp_path / "a.csv", 'id,quantity\na,""\nb,\nc,1\n')

    assert codes(table) == ["TYPE_MISMATCH", None, None]
    assert table.column("_detail_0").to_pylist()[0] == 'quantity: "" does not fit int'
    rules = RecordRules(empty_is_null=False)
    objects = replace(group_of({"notes": "map<string,string>"}), record_rules=rules)
    assert codes(read(objects, tmp_path / "a.jsonl", '{"notes":[]}\n')) == ["TYPE_MISMATCH"]
