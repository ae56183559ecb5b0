"""The values that rows of two sides share by their join's condition."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from livemart.plan.relations.equi_keys import equi_keys


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.k = b.k", [("a.k", "b.k", False)]),
        ("b.k <=> upper(a.k)", [("upper(a.k)", "b.k", True)]),
        ("a.k = b.k and (a.x = b.y and a.z > b.z)", [("a.k", "b.k", False), ("a.x", "b.y", False)]),
        ("a.k = b.k or a.x = b.x", []),
        ("(a.k = b.k and a.x = 1) or (b.y = 2 and (a.k = b.k))", [("a.k", "b.k", False)]),
        ("a.k = b.k and a.x = 1 or a.k = b.k and a.x = b.x or a.k = b.k", [("a.k", "b.k", False)]),
        ("(a.k = b.k and a.x = 1) or (a.k <=> b.k and a.x = 2)", []),
        ("(a.k = b.k and a.x = 1) or a.x = 2", []),
        ("a.k = a.x and b.k = 1", []),
        ("a.k = b.k + a.x", []),
    ],
)
def test_equalities_between_the_sides(
    condition: str, expected: list[tuple[str, str, bool]]
) -> None:
    keys = equi_keys(parse_one(condition, dialect="spark"), frozenset({"b"}))

    assert [
        (key.left.sql().lower(), key.right.sql().lower(), key.null_safe) for key in keys
    ] == expected
