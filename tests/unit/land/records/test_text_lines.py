"""A line of text is one record; what is no text, or does not fit the column, has a reason."""

from __future__ import annotations

from pathlib import Path

from tests.unit.land.records.rows import codes, good, group_of, read


def test_each_line_is_a_row_as_it_is(tmp_path: Path) -> None:
    content = '\ufeff first \r\n\n"quoted", {"a":1}\r\n\t\nlast'

    table = read(group_of({"line": "string"}, "text"), tmp_path / "a.log", content)

    assert good(table, "_origin", "line") == [
        ("a.log:1", " first "),
        ("a.log:3", '"quoted", {"a":1}'),
        ("a.log:4", "\t"),
        ("a.log:5", "last"),
    ]


def test_a_line_may_be_a_number(tmp_path: Path) -> None:
    table = read(group_of({"line": "int"}, "text"), tmp_path / "a", "7\nseven\n-3\n99999999999\n")

    assert good(table, "line") == [7, -3]
    assert codes(table) == [None, "TYPE_MISMATCH", None, "TYPE_MISMATCH"]


def test_what_is_no_text_is_refused_alone(tmp_path: Path) -> None:
    content = b"a\n\xff\n\0\n" + b"x" * (3 << 20) + b"\nb\n"

    table = read(group_of({"line": "string"}, "text"), tmp_path / "a", content)

    assert good(table, "line") == ["a", "b"]
    assert sorted(map(str, codes(table))) == [
        *("MALFORMED_RECORD", "MALFORMED_RECORD", "None", "None", "RECORD_TOO_LARGE"),
    ]
    assert (3 << 20) in table.column("_record_bytes").to_pylist()
