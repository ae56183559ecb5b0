"""Lines are numbered alike in the whole file, in its spans, and however it is read in blocks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from livemart.land.sources.files.lines import read_lines, split_file


def test_spans_of_a_file_are_the_file_with_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"line %d %s\n" % (number, b"x" * 1_000) for number in range(20_000)))
    whole = [line for run in read_lines(path) for line in run.lines if line[1]]

    spans = split_file(path, 1 << 20)
    actual = [line for s in spans for run in read_lines(path, s) for line in run.lines if line[1]]

    assert len(spans) > 3
    assert actual == whole


@pytest.mark.parametrize("run_bytes", [8, 13, 1 << 20])
def test_lines_are_the_same_however_the_file_is_cut_into_blocks(
    tmp_path: Path, run_bytes: int
) -> None:
    content = b"\xef\xbb\xbfone\r\n\n" + b"long " * 20 + b"\n\x00\xff\n\nlast"
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "zipped").write_bytes(gzip.compress(content[:20]) + gzip.compress(content[20:]))
    expected = list(enumerate(content[3:].split(b"\n"), 1))

    for name in ("plain", "zipped"):
        runs = read_lines(tmp_path / name, run_bytes=run_bytes)

        assert [line for run in runs for line in run.lines] == expected
