"""Functions whose answer may differ between two runs over the same rows."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.determinism import require_deterministic
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
