from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from livemart.spark_sql import literal, quoted


@pytest.mark.parametrize(
    ("name", "expected"), [("order id", "`order id`"), ("a`b", "`a``b`"), ("", "``")]
)
def test_a_name_is_quoted(name: str, expected: str) -> None:
    assert quoted(name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E-7"), "0.0000001"),
        (b"\x00\xff", "X'00ff'"),
        ("Joe's \\ bar", r"'Joe\'s \\ bar'"),
        (date(2026, 3, 1), "date'2026-03-01'"),
        (datetime(800, 3, 1, 12), "timestamp_ntz'0800-03-01 12:00:00.000000'"),
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "timestamp'2026-03-01 12:00:00.000000+00:00'"),
    ],
)
def test_a_value_is_written_as_spark_reads_it(value: object, expected: str) -> None:
    assert literal(value) == expected
