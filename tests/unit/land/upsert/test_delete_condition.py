from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.land.upsert.delete_condition import compile_condition

ROWS = pa.table(
    {"op": ["d", "c", None, "D"], "n": [1, 2, None, 4], "gone": [True, None, False, True]}
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("op = 'd'", [True, False, None, False]),
        ("OP <> 'd' and not gone", [False, None, None, False]),
        ("op in ('d', 'c') or n is null", [True, True, True, False]),
        ("op is not null", [True, True, False, True]),
        ("gone", [True, None, False, True]),
        ("(n = 4)", [False, False, None, True]),
        ("gone = false", [False, None, True, False]),
    ],
)
def test_simple_conditions_are_evaluated_with_three_values(
    condition: str, expected: list[bool | None]
) -> None:
    mask = compile_condition(condition, ROWS.schema)
    assert mask is not None
    actual = mask(ROWS)
    actual = actual.combine_chunks() if isinstance(actual, pa.ChunkedArray) else actual

    assert actual.to_pylist() == expected


@pytest.mark.parametrize(
    "condition",
    [
        *("lower(op) = 'd'", "op = 1", "op like 'd%'", "n > 2", "op = '\\n'", "op = 'it''s'"),
        *("n = '4'", "n = '\u0664'", "n = 9223372036854775808", "n in (4, 1e20)"),
    ],
)
def test_what_only_spark_knows_is_left_to_spark(condition: str) -> None:
    actual = compile_condition(condition, ROWS.schema)

    assert actual is None
