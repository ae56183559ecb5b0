"""Values keep the text that was written, also in what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from livemart.land.records.exact_values import parse_json
from livemart.land.records.untyped_values import compact, misfit


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"a b"', "a b"),
        ("null", None),
        ("1.50", "1.50"),
        ("true", "true"),
        ('{"b": [1.0, "ü", null], "a": 2e3}', '{"b":[1.0,"ü",null],"a":2e3}'),
    ],
)
def test_a_rescued_value_is_text_with_numbers_as_written(
    written: str, expected: str | None
) -> None:
    assert compact(parse_json(written.encode())) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('say "hi"', r'tip: "say \"hi\"" does not fit int'),
        (parse_json(b"1.50"), "tip: 1.50 does not fit int"),
        (parse_json(b"[1]"), "tip: [1] does not fit int"),
        ("x" * 81, f'tip: "{"x" * 80}... (81 characters)" does not fit int'),
    ],
)
def test_a_misfit_shows_the_value_and_cuts_a_long_one(value: Any, expected: str) -> None:
    error = misfit("tip", value, "int")

    assert (str(error), error.code) == (expected, "TYPE_MISMATCH")
