"""Which stored column a time moves with."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from livemart.plan.relations.monotone import base_time, restriction_of
from livemart.plan.relations.relation import Restriction, Want

HOUR = 3_600_000_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(at)", ("at", 0)),
        ("at - interval 2 hours", ("at", 2 * HOUR)),
        ("cast(at as date)", ("at", DAY)),
        ("cast(at as timestamp_ntz)", ("at", 1)),
        ("date_trunc('month', at)", ("at", 31 * DAY)),
        ("window(at, '5 minutes').start", ("at", HOUR // 12)),
        ("date_trunc('hour', at + interval 1 hour)", ("at", 2 * HOUR)),
        ("at + later", None),
        ("upper(at)", None),
        ("timestamp '2026-03-01'", None),
    ],
)
def test_the_column_of_a_time(expression: str, expected: tuple[str, int] | None) -> None:
    assert base_time(parse_one(expression, dialect="spark")) == expected


def test_a_key_that_got_lost_narrows_nothing_and_a_time_is_widened_by_its_margin() -> None:
    want = Want((None, parse_one("k")), parse_one("date_trunc('hour', at)", dialect="spark"), 1, 2)

    assert restriction_of(want) == Restriction(((1, "k", 0),), "at", HOUR + 1, HOUR + 2)
