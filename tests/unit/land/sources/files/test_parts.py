"""A file is parsed as a whole or in spans, to the same rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.land.records.runs import Span
from livemart.land.sources.files import parts
from livemart.land.sources.files.parts import FilePart, content_of, parts_of
from tests.unit.land.records.rows import good, group_of, read

GROUP = group_of({"text": "string"})


def test_spans_give_the_rows_of_the_file_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"{number}"}) + "\n" for number in range(20)]
    whole = read(GROUP, path, "".join(lines))
    cut = len("".join(lines[:7]))

    spans = [Span(0, cut), Span(cut, None, first_line=8)]
    tables = [table for span in spans for table in FilePart(path.name, path, span).read(GROUP)]

    assert pa.concat_tables(tables).sort_by("_origin").equals(whole)


def test_only_what_each_part_can_say_by_itself_is_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_SPAN_BYTES", 40)
    monkeypatch.setattr("livemart.land.sources.files.lines.READ_BYTES", 16)
    path = tmp_path / "a"
    content = b'{"text":"a"}\n' * 20

    def count(data: bytes, record_format: str) -> int:
        path.write_bytes(data)
        return len(parts_of("a", path, record_format))

    assert count(content, "json") > 1
    assert count(content[:39], "json") == 1
    assert count(content, "csv") == 1
    assert count(b"[" + b",".join([content.split(b"\n")[0]] * 20) + b"]", "json") == 1
    assert count(gzip.compress(content), "json") == 1


@pytest.mark.parametrize(
    "first",
    [
        *(
            b"[INFO] begin {",
            b'[{"text":"c"},',
            b"%PDF-1.7",
            b"PK\x03\x04",
            b"BZh91AY&SY",
            b"\x1f\x8b",
        ),
        *(
            b"\xef\xbb\xbfa",
            b"a" * 257 + b"ustar",
            b"a" * 255 + b"ustar\0",
            b"a" * 256 + b"ustar\0",
        ),
    ],
)
@pytest.mark.parametrize("record_format", ["json", "text"])
def test_the_first_line_of_what_we_write_decides_for_no_other(
    tmp_path: Path, record_format: str, first: bytes
) -> None:
    group = group_of({"line" if record_format == "text" else "text": "string"}, record_format)
    path, others = tmp_path / "a", [b'{"text":"a"}', b'{"text":"b"}']

    table = read(group, path, content_of(b"\n".join([first, *others, b""]), record_format))

    assert table.num_rows == 3
    lines = [first.decode(errors="replace"), *(it.decode() for it in others)]
    expected = ["a", "b"] if record_format == "json" else lines
    if b"\0" in first or b"\x8b" in first:
        expected = expected[-2:]
    assert good(table, *group.schema.names) == expected


def test_other_lines_are_written_as_they_are() -> None:
    assert content_of(b'\n{"a":1}\n', "json") == b'\n{"a":1}\n'
    assert content_of(b"[a]\n", "text") == b"[a]\n"
    assert content_of(b"\xef\xbb\xbfid,%PDF-\n", "csv") == b"\xef\xbb\xbfid,%PDF-\n"
