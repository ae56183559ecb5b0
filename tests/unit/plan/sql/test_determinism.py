"""Functions whose answer may differ between two runs over the same rows."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.determinism import is_unsteady, require_deterministic
from livemart.plan.sql.parse import parse


@pytest.mark.parametrize(
    "expression",
    ["rand()", "uuid()", "current_timestamp()", "now()", "_metadata.file_name", "sales._METADATA"],
)
def test_a_function_of_chance_or_of_the_wall_clock_is_refused(expression: str) -> None:
    with pytest.raises(Inapplicable) as caught:
        require_deterministic(parse(f"select shop,\n{expression} as x from s.sales"))

    assert caught.value.reason.code == "EXPRESSION_NOT_DETERMINISTIC"
    assert caught.value.reason.line == 2


def test_other_functions_pass() -> None:
    require_deterministic(
        parse("select upper(shop) as x, sum(amount) as n from s.sales group by 1")
    )


@pytest.mark.parametrize(
    ("expression", "step"),
    [
        ("current_date()", "as_of"),
        ("unix_timestamp()", "as_of"),
        ("localtimestamp()", "as_of"),
        ("timestamp 'today'", "as_of"),
        ("rand(3)", "xxhash64"),
        ("shuffle(array(1, 2))", "xxhash64"),
        ("aes_encrypt(shop, 'key')", "xxhash64"),
        ("monotonically_increasing_id()", "leave it out"),
        ("current_user()", "leave it out"),
    ],
)
def test_the_next_step_fits_what_differs(expression: str, step: str) -> None:
    with pytest.raises(Inapplicable) as caught:
        require_deterministic(parse(f"select shop, {expression} as x from s.sales"))

    assert step in (caught.value.reason.suggestion or "")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x + 1", False),
        ("return extract(year from x)", False),
        ("return trim(both '-' from x) is not distinct from 'from'", False),
        ("return x + (select max(y) from t)", True),
        ("return (from t |> select max(y))", True),
        ("return (values (1) union all table t)", True),
        ("return (with x(a) as (values (1)) from x)", True),
        ("return extract(year from (from t |> select max(y)))", True),
        ("return rand()", True),
    ],
)
def test_a_function_that_may_read_a_table_is_unsteady(body: str, expected: bool) -> None:
    assert is_unsteady(f"create function f(x int) returns int {body}") is expected
