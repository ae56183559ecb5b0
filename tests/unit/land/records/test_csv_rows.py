from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pytest

from livemart.land.records import csv_rows, parse, pieces
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


PLAIN = {
    "id": "string",
    "count": "bigint",
    "small": "tinyint",
    "price": "decimal(6,2)",
    "share": "double",
    "narrow": "float",
    "flag": "boolean",
    "at": "timestamp",
    "day": "date",
}
VALUES = {
    "id": ["a", "größe", " x ", "", "NULL", "null", "0x1", "-", "'q'"],
    "count": ["7", "-0", "0", "", "007", "1e3", "7.0", " 7", "9" * 19, "1_0", "+1", "x"],
    "small": ["7", "-128", "127", "128", "", "1.5"],
    "price": ["1.5", "1.50", "-0.01", "9999.99", "10000", "1.505", "1.500", "", ".5", "1.", "1e1"],
    "share": ["0.1", "-2", "1e3", "1e400", "nan", "", "123456789012345.123456789", "Infinity"],
    "narrow": ["0.1", "16777217", "3.5e38", "", "-0.0"],
    "flag": ["true", "false", "", "True", "1"],
    "at": [
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00",
        "",
        "2026-03-01",
        "2026-03-01T12:00:00.5Z",
    ],
    "day": ["2026-03-01", "", "2026-02-30", "0000-01-01"],
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("good_share", [0.5, 0.999])
def test_runs_that_are_read_fast_are_read_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, good_share: float
) -> None:
    chance = random.Random(seed)
    names = [*PLAIN, "stranger"]
    chance.shuffle(names)

    def value(name: str) -> str:
        if name == "stranger":
            return "" if chance.random() < good_share else "tip"
        values = VALUES[name]
        return values[0] if chance.random() < good_share else chance.choice(values)

    rows = [",".join(value(name) for name in names) for _ in range(120)]
    rows += ["too,few", "a\rb" + "," * (len(names) - 1)]
    chance.shuffle(rows)
    content = ",".join(names) + "\n" + "\n".join(rows)
    group = group_of(PLAIN, "csv")

    fast = read(group, tmp_path / "a.csv", content)
    monkeypatch.setattr(pieces, "_fast_rows", lambda *_: None)
    exact = read(group, tmp_path / "a.csv", content)

    assert fast.equals(exact)


def test_a_run_of_good_records_is_read_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "read_one_by_one", lambda *_: 1 / 0)
    content = "id,count,price,at\na,1,2.50,2026-03-01T12:00:00Z\nb,,,\n"

    table = read(group_of(PLAIN, "csv"), tmp_path / "a.csv", content)

    assert good(table, "id", "count", "price") == [("a", 1, Decimal("2.50")), ("b", None, None)]


def test_a_mark_that_begins_a_value_stays_wherever_its_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "_RUN_RECORDS", 2)
    content = "id,count\na,1\n\ufeffb,2\n\ufeffc,3\nd,4\n"

    table = read(group_of(PLAIN, "csv"), tmp_path / "a.csv", content)

    assert good(table, "id") == ["a", "\ufeffb", "\ufeffc", "d"]
