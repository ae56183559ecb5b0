from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.land.records.rows import codes, good, group_of, read

COLUMNS = {"id": "string", "quantity": "int", "price": "decimal(6,2)", "tags": "array<string>"}


def test_quoted_fields_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    first = '"a,""x""\nline",1,2.50,"[""p"",""q""]"'
    content = f'id,quantity,price,tags\r\n{first}\r\n\r\n"",,,\r\nb,2,3,\r\n'

    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", content)

    assert good(table, "_origin", "id", "quantity", "price", "tags") == [
        ("a.csv:2", 'a,"x"\nline', 1, Decimal("2.50"), ["p", "q"]),
        ("a.csv:5", "", None, None, None),
        ("a.csv:6", "b", 2, Decimal("3.00"), None),
    ]


def test_a_missing_column_is_null_and_an_unknown_one_is_rescued(tmp_path: Path) -> None:
    content = "note,id\nhot,a\n,b\n"

    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", content)

    assert good(table, "id", "price", "_rescued_data") == [
        ("a", None, [("note", "hot")]),
        ("b", None, None),
    ]


def test_a_stray_quote_takes_no_other_line_with_it(tmp_path: Path) -> None:
    content = 'id,quantity\na,1\n5" pipe,2\nb,3\n7" pipe,4\nc,5\n"never closed,6\nd,7\n'

    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", content)

    assert good(table, "id") == ["a", "b", "c", "d"]
    assert codes(table).count("MALFORMED_RECORD") == 3


def test_broken_lines_are_refused_one_by_one(tmp_path: Path) -> None:
    content = b"id,quantity\na,1,2\nb\nc,\xff\nd,\x00\ne,x\nf,1.0\n"

    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", content)

    assert codes(table) == [*["MALFORMED_RECORD"] * 4, "TYPE_MISMATCH", None]
    assert good(table, "id", "quantity") == [("f", 1)]


def test_without_a_header_no_line_can_be_read(tmp_path: Path) -> None:
    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", "id,id\na,1\nb,2\n")
    empty = read(group_of(COLUMNS, "csv"), tmp_path / "b.csv", "id,quantity\n")

    assert codes(table) == ["MALFORMED_RECORD"] * 3
    assert len(empty) == 0


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("a,1\nb,2\n", id="no header"),
        pytest.param("id,quantity\ra,1\rb,2\r", id="lines that only a carriage return ends"),
        pytest.param("\ufeff\ufeffi\n1\n", id="two byte order marks"),
    ],
)
def test_a_file_whose_header_names_no_column_is_never_passed_over(
    tmp_path: Path, content: str
) -> None:
    table = read(group_of(COLUMNS, "csv"), tmp_path / "a.csv", content)

    assert codes(table) == ["MALFORMED_RECORD"] * len(content.rstrip("\n").split("\n"))
