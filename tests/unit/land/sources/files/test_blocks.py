"""The content of a file in blocks, gzip as what is in it, and what blocks have cut."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.land.records.runs import CutLine, line_size
from livemart.land.sources.files import blocks
from livemart.land.sources.files.blocks import Unended, read_blocks

CONTENT = bytes(range(256)) * 8


def content(path: Path, start: int = 0, end: int | None = None) -> tuple[bytes, list[str]]:
    """Return what is read in blocks of 100 bytes, and what is said of its end."""
    read = list(read_blocks(path, start, end, 100))
    return b"".join(block for block, _ in read), [said for _, said in read if said]


@pytest.mark.parametrize(("start", "end"), [(0, None), (0, 150), (99, 301), (2_000, None)])
def test_a_part_of_a_file_is_read_to_its_byte(tmp_path: Path, start: int, end: int | None) -> None:
    path = tmp_path / "a"
    path.write_bytes(CONTENT)

    assert content(path, start, end) == (CONTENT[start:end], [])


def test_gzip_is_its_content_whatever_part_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    # Two members, and padding behind them.
    path.write_bytes(gzip.compress(CONTENT) + gzip.compress(b"more") + b"\0" * 10)

    assert content(path, 5, 50) == (CONTENT + b"more", [])


def test_gzip_that_ends_early_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-12])

    read, said = content(path)

    assert CONTENT.startswith(read)
    assert said == ["gzip content ends early"]


def test_of_what_is_too_long_the_beginning_and_the_size_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "_KEPT_BYTES", 6)
    line = Unended(b"+")
    for part in (b"+abc", b"def", b"ghi"):
        line.add(part)

    cut = line.end()

    assert (cut, line_size(cut), type(cut)) == (b"abcde", 9, CutLine)
    # The mark is of the first one alone.
    line.add(b"+x")
    assert line.end() == b"+x"


@pytest.mark.parametrize("compression", ["zstd", "bz2"])
def test_other_compressions_are_their_content_as_far_as_it_goes(
    tmp_path: Path, compression: str
) -> None:
    path = tmp_path / "a"
    lines = b"".join(b"line %d\n" % number for number in range(200_000))
    packed = (
        pa.compress(lines, compression, asbytes=True)
        if compression == "zstd"
        else bz2.compress(lines)
    )
    path.write_bytes(packed)

    assert content(path, start=3) == (lines, [])
    # Several members, as `cat` of two files makes them.
    path.write_bytes(packed + packed)
    assert content(path) == (lines * 2, [])
    path.write_bytes(packed[: len(packed) // 2])
    read, problems = content(path)
    assert lines.startswith(read)
    assert len(problems) == 1
    assert compression in problems[0]


def test_a_line_that_begins_like_bz2_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"BZh9 is text\n")

    assert content(path) == (b"BZh9 is text\n", [])
    path.write_bytes(bz2.compress(b""))
    assert content(path) == (b"", [])
