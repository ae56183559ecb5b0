"""Files that hold no records are named by kind, with the next step."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.land.records.judge import Rules
from livemart.land.records.misread import misread_json
from livemart.land.sources.files.parts import FilePart
from livemart.project.graph import RowRules
from tests.unit.land.records.rows import group_of


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", "<worksheet/>\n" * 3)
    return content.getvalue()


def tarred() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("orders.jsonl"))
    return content.getvalue()


def details(path: Path, record_format: str) -> list[str | None]:
    tables = FilePart("a", path).read(group_of({"n": "bigint"}, record_format))
    return [it for table in tables for it in table.column("_detail_0").to_pylist()]


@pytest.mark.parametrize("record_format", ["json", "csv"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (zipped(), "the file is a zip archive (an .xlsx is one): deliver what is in it"),
        (tarred(), "the file is a tar archive"),
        (gzip.compress(tarred(), mtime=0), "the file is a tar archive"),
        ('{"n": 1}\n'.encode("utf-16"), "the file is UTF-16: write it as UTF-8"),
        ('{"n": 1}\n'.encode("utf-32"), "the file is UTF-32: write it as UTF-8"),
        (b"%PDF-1.7\n1 0 obj\n", "the file is a PDF"),
        (b"SQLite format 3\0\n", "the file is a SQLite database"),
    ],
    ids=["zip", "tar", "gzip of tar", "UTF-16", "UTF-32", "PDF", "SQLite"],
)
def test_a_file_that_holds_no_lines_is_one_dead_letter_that_names_it(
    tmp_path: Path, content: bytes, expected: str, record_format: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)

    (detail,) = details(path, record_format)

    assert detail is not None and detail.startswith(expected)


@pytest.mark.parametrize("indent", [1, 4])
def test_an_object_over_several_lines_is_told_at_each_of_its_fields(
    tmp_path: Path, indent: int
) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps({"n": 1, "items": [{"id": "x"}]}, indent=indent))

    actual = details(path, "json")

    spread = "a part of an object that is spread over lines"
    assert [it and it.startswith(spread) for it in actual] == [True] * 8


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"n": 1} {"n": 2}', "several objects in one: write one object a line"),
        ('{"n": 1},{"n": 2},', "several objects in one"),
        ('{"n": 1},', "a comma behind the object"),
        ('{"n": 1, "s": ",}",}', "a comma before a closing bracket"),
        ('\ufeff{"n": 1}', "a byte order mark"),
        ("<html><body>", "XML or HTML"),
        ("{'n': 1, 's': None}", "an object as Python prints it"),
        ('{"n": 1, "flags": [True, None]}', "an object as Python prints it"),
        ('{"n": 1};', "text behind the object"),
        ('{"n": 1} // one', "text behind the object"),
        ('2026-03-01 INFO {"n": 1}', "text before the object"),
        ('data: {"n": 1}', "text before the object"),
        ('\x1e{"n": 1}', "text before the object"),
        ("1,2026-03-01 10:00:00", "a line of CSV, it seems"),
        ('"a";"b"', "a line of CSV, it seems"),
        (json.dumps('{"n": 1}'), "not a JSON object: an object in a text, encoded twice"),
    ],
)
def test_a_line_that_is_no_object_is_told_as_what_it_looks_like(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = tmp_path / "a"
    path.write_text(f'{{"n": 0}}\n{line}\n{{"n": 3}}\n')

    (detail,) = [it for it in details(path, "json") if it is not None]

    assert detail.startswith(expected)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('{"n": 1}', "header: JSON: write `format: json`"),
        ('[{"n": 1}]', "header: JSON: write `format: json`"),
        ("n;s", "header: its names are separated by semicolons"),
        ("s\tn", "header: its names are separated by tabs"),
        ("s|t", "header: none of its names is a declared column"),
    ],
)
def test_a_header_of_another_format_says_of_which(
    tmp_path: Path, header: str, expected: str
) -> None:
    path = tmp_path / "a"
    path.write_text(f"{header}\n")

    (detail,) = details(path, "csv")

    assert detail is not None and detail.startswith(expected)


@pytest.mark.parametrize(
    "line",
    [
        *("1,", '"x",', "{broken", "nonsense", '{"n": 1', "[1", '{"n": "a,}"'),
        # One object whose content alone is refused.
        *('{"n": 1, "n": 2}', '{"n": NaN}', '{"s": "\\ud83c"}', '{"s": "\\u0000"}'),
    ],
)
def test_of_other_contents_the_parser_alone_speaks(line: str) -> None:
    assert misread_json(line.encode()) is None


@pytest.mark.parametrize(
    ("written", "is_told"),
    [
        ("2026-03-01T14:30:00", True),
        ("2026-03-01 14:30:00.25", True),
        ("2026-03-01T14:30", True),
        ("2026-03-01T14:30:00Z", False),
        ("2026-03-01T14:30:00.25+00:00", False),
        ("2026-03-01 14:30 +00", False),
        ("2026-03-01T16:30:00+02:00", False),
    ],
)
@pytest.mark.parametrize("record_format", ["json", "csv"])
def test_a_future_time_without_a_zone_says_that_it_was_taken_as_utc(
    tmp_path: Path, written: str, is_told: bool, record_format: str
) -> None:
    path = tmp_path / "a"
    record = json.dumps({"at": written, "other": "2026-03-01T14:30:00"})
    path.write_text(record if record_format == "json" else f"at\n{written}\n")
    rules = Rules(RowRules(max_future=timedelta(hours=1)), "at")
    group = group_of({"at": "timestamp"}, record_format, rules)

    table = pa.concat_tables(FilePart("a", path).read(group))

    assert table.column("_code_0").to_pylist() == ["FUTURE_EVENT_TIME"]
    (detail,) = table.column("_detail_0").to_pylist()
    assert detail.endswith("; no zone in the value, taken as UTC") == is_told


def test_a_word_where_archives_have_their_mark_makes_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"n": 1}\n'.ljust(257) + b'ustar\n{"n": 2}\n')

    tables = [*FilePart("a", path).read(group_of({"n": "bigint"}))]

    assert [it for table in tables for it in table.column("n").to_pylist()] == [1, 2, None]
