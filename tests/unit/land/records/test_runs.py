"""A record stays the bytes that it was, with what is known beside them."""

from __future__ import annotations

import pickle

import pytest

from livemart.land.records.runs import WHOLE, CutLine, KeyedLine, Span, line_size


def test_a_cut_line_has_the_size_of_the_whole_one() -> None:
    line = CutLine.of(b"abc", 5_000_000)

    assert line == b"abc"
    assert (line_size(line), line_size(b"abc")) == (5_000_000, 3)


@pytest.mark.parametrize("key", [b"k", b"", None])
def test_a_keyed_line_reaches_a_worker_with_its_key(key: bytes | None) -> None:
    line = pickle.loads(pickle.dumps(KeyedLine.of(b"abc", key)))

    assert (line, line.key) == (b"abc", key)


def test_a_whole_file_is_the_span_from_its_first_record_to_the_end() -> None:
    assert Span(0, None, 1) == WHOLE
