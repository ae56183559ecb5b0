"""Frames in value space, and intervals in microseconds."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from livemart.plan.relations.frames import frame_of, interval_micros

MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("interval 5 minutes", 5 * MINUTE),
        ("interval '-1' minute", -MINUTE),
        ("interval 1 month", None),
        ("5", None),
    ],
)
def test_the_length_of_an_interval(interval: str, expected: int | None) -> None:
    assert interval_micros(parse_one(interval, dialect="spark")) == expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("order by at range between interval 5 minutes preceding and current row", (5, 0)),
        ("order by at desc range between interval 5 minutes preceding and current row", (0, 5)),
        ("order by at range between current row and interval 1 minute following", (0, 1)),
        ("order by at range between unbounded preceding and current row", None),
        ("order by at rows between 1 preceding and current row", None),
        ("order by at", None),
    ],
)
def test_how_far_a_frame_reaches(frame: str, expected: tuple[int, int] | None) -> None:
    window = parse_one(f"sum(x) over (partition by k {frame})", dialect="spark")
    assert isinstance(window, exp.Window)

    found = frame_of(window, window.this)

    reach = None if found is None else (found.before // MINUTE, found.after // MINUTE)
    assert reach == expected
