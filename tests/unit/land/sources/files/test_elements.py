"""A file that is one JSON array gives its elements, however it is cut and whatever is broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from livemart.land.sources.files.elements import is_array, read_elements
from livemart.land.sources.files.lines import split_file

RECORDS = [
    {"id": 'a", ] } \\', "n": [1, [2]], "o": {"p": "[,"}},
    {"id": "größe\\\\", "n": [], "o": {}},
    {"id": '\n\t"', "n": [{"x": "]"}], "o": {"p": None}},
]


def elements(path: Path, content: bytes, block: int = 1 << 20) -> list[tuple[int, bytes]]:
    path.write_bytes(content)
    return [line for run in read_elements(path, block) for line in run.lines]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_elements_are_whole_however_a_file_is_cut(
    tmp_path: Path, block: int, indent: int | None
) -> None:
    content = b"\xef\xbb\xbf \n" + json.dumps(RECORDS, indent=indent).encode() + b"\n"

    found = elements(tmp_path / "a.json", content, block)

    assert [number for number, _ in found] == [1, 2, 3]
    assert [json.loads(element) for _, element in found] == RECORDS
    zipped = tmp_path / "b.json.gz"
    assert elements(zipped, gzip.compress(content), block) == found
    assert is_array(tmp_path / "a.json") and is_array(zipped)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"[]", [], id="empty"),
        pytest.param(b'[1,"b",{"c":1},[2]]', [b"1", b'"b"', b'{"c":1}', b"[2]"], id="others"),
        pytest.param(b"[{},\n,{}, ]", [b"{}", b"{}"], id="commas without elements"),
        pytest.param(b'[{"a":}, {"b":1}]', [b'{"a":}', b'{"b":1}'], id="a broken element"),
        pytest.param(
            b'[{"a":"x},\n{"b":1},\n{"c":1}]',
            [b'{"a":"x},', b'{"b":1}', b'{"c":1}'],
            id="a quote that is not closed",
        ),
        pytest.param(
            b'[1,2]\n{"a":1}\n\n{"b":[1,\n2]}\n[3]',
            [b"1", b"2", b'{"a":1}', b'{"b":[1,\n2]}', b"3"],
            id="lines behind it, and another array",
        ),
    ],
)
def test_each_element_is_judged_by_itself(
    tmp_path: Path, content: bytes, expected: list[bytes]
) -> None:
    found = elements(tmp_path / "a.json", content)

    assert [element.strip() for _, element in found] == expected


def test_an_array_that_does_not_end_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a":1},{"b":')

    runs = list(read_elements(path))

    assert [(run.lines, run.problem) for run in runs] == [
        ([(1, b'{"a":1}')], None),
        ([(2, b'{"b":')], "the array does not end"),
    ]


def test_of_an_element_beyond_memory_the_beginning_is_kept(tmp_path: Path) -> None:
    large = b'{"a":"' + b"x" * (3 << 20) + b'"}'

    found = elements(tmp_path / "a.json", b"[" + large + b',{"b":1}]')

    assert [(number, len(element) < 3 << 20) for number, element in found] == [(1, True), (2, True)]
    assert found[0][1].size == len(large)  # type: ignore[attr-defined]
    assert found[1][1] == b'{"b":1}'


def test_lines_are_no_array_and_an_array_is_not_split(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":[1]}\n' * 100)

    assert not is_array(path)
    assert len(split_file(path, 100)) > 1
    path.write_bytes(b"")
    assert not is_array(path)
