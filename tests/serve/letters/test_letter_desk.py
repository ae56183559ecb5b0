"""A place among letters goes to a client and comes back, and nothing else is taken for one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from livemart.epoch import parse_moment
from livemart.serve.http.problems import ProblemError
from livemart.serve.letters.letter_desk import LetterDesk, read_place, utc_moment, write_place

PLACE = (datetime(2026, 3, 1, 12, 0, 0, 7, UTC), 4, "bronze.orders", "a/ü 1.jsonl:7", "NULL_KEY")


def test_a_place_comes_back_as_it_was() -> None:
    assert read_place(write_place(PLACE)) == PLACE


@pytest.mark.parametrize(
    "text",
    [
        *("", "?", "1.2.aa.bb", "1.2.aa.bb.cc.dd", "x.2.aa.bb.cc", "1.2.a.bb.cc", "-1.2.aa.bb.cc"),
        *(f"{'9' * 18}.1...", f"1.{'9' * 19}...", "1.2.aa.bb.cc\n"),
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="PARAMETER_WRONG: after"):
        read_place(text)


def test_whatever_is_written_like_a_place_is_one() -> None:
    assert read_place(f"{'9' * 17}.{'9' * 18}.ff..00")[1:] == (10**18 - 1, "\ufffd", "", "\0")


@pytest.mark.parametrize(
    ("asked", "moment"),
    [
        ("2026-03-01T12:00", "2026-03-01T12:00+00:00"),
        ("2026-03-01T12:00+02:00", "2026-03-01T10:00+00:00"),
        ("0001-01-01T00:00+14:00", "0001-01-01T00:00+00:00"),
        ("9999-12-31T23:00-14:00", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_moment_is_of_utc(asked: str, moment: str) -> None:
    assert utc_moment(parse_moment(asked)) == datetime.fromisoformat(moment)


def test_where_nothing_has_landed_nothing_is_said_to_be_well(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="LETTERS_MISSING: no table of dead letters in"):
        LetterDesk(tmp_path).versions()
