"""A file is parsed as a whole or in spans, to the same rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.land.records.runs import Span
from livemart.land.sources.files import parts
from livemart.land.sources.files.parts import FilePart, parts_of
from tests.unit.land.records.rows import group_of, read

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
