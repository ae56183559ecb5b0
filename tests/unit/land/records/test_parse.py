"""Records of each format become judged rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.land.records import parse
from livemart.land.records.parse import RECORD_FORMATS
from livemart.land.sources.files.parts import FilePart
from livemart.project.sources import FORMATS
from tests.unit.land.records.rows import codes, good, group_of, read

GROUP = group_of({"text": "string"})


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_long_file_comes_in_several_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(parse, "_RUN_RECORDS", 2)
    content = {"json": '{"text":"x"}\n' * 5, "csv": "text\n" + "x\n" * 5}[format]
    path = tmp_path / "a"
    path.write_text(content)

    tables = list(FilePart("a", path).read(group_of({"text": "string"}, format)))

    assert [table.num_rows for table in tables] == [2, 2, 1]
    assert all(table.schema.equals(tables[0].schema) for table in tables)


def test_a_json_array_is_read_as_its_elements(tmp_path: Path) -> None:
    content = '[{"text":"a"},\n {"text":1}, 7,\n {"text":["x"]} ,{"text":"b"}\n]\n'

    table = read(GROUP, tmp_path / "a.json", content)

    assert good(table, "_origin", "text") == [
        ("a.json:1", "a"),
        ("a.json:2", "1"),
        ("a.json:5", "b"),
    ]
    assert codes(table) == [None, None, "MALFORMED_RECORD", "TYPE_MISMATCH", None]
    # In CSV it is a field like any other.
    rows = read(group_of({"[text": "string"}, "csv"), tmp_path / "a.csv", "[text\na\n")
    assert good(rows, "[text") == ["a"]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    for format in ("json", "csv"):
        table = read(group_of({"text": "string"}, format), tmp_path / "a", "\n\n")

        assert table.num_rows == 0


def test_blanks_round_a_line_of_json_are_not_part_of_the_record(tmp_path: Path) -> None:
    table = read(GROUP, tmp_path / "a.jsonl", ' {"text":"a"}\t\r\n  x  \n')

    assert good(table, "text") == ["a"]
    assert codes(table) == [None, "MALFORMED_RECORD"]
    assert table.column("_record").to_pylist() == [None, "x"]


def test_every_format_that_a_project_may_name_has_a_reader() -> None:
    assert tuple(RECORD_FORMATS) == FORMATS
