"""Which sums are exact, and the changed rows of an anchor as of one side."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, DoubleType, IntegerType, LongType

from livemart.arrow.bags import WEIGHT
from livemart.arrow.sum_limits import SumLimits
from livemart.plan.strategies.signed import Output, Summed
from livemart.refresh.inputs import Side
from livemart.refresh.signed import _changed_rows, _limits_of


def _limits(stored: pa.DataType, *analysed: str) -> SumLimits | None:
    """Return what a total is worth; Spark says that its argument and steps have these types."""
    answers = [_frame(analysed[:1]), _frame(analysed[1:])]
    run = SimpleNamespace(
        stored=SimpleNamespace(field=pa.schema([("total", stored)]).field),
        views=SimpleNamespace(analyzed=lambda sql: answers.pop(0)),
    )
    steps = tuple((f"step {place}", False) for place in range(len(analysed) - 1))
    output = Output("total", "sum", (Summed(("select x as w0 from t",), steps),))
    return _limits_of(cast(Any, run), output)


def _frame(kinds: Sequence[str]) -> Any:
    fields = [SimpleNamespace(dataType=_KINDS[kind]) for kind in kinds]
    return SimpleNamespace(schema=SimpleNamespace(fields=fields))


_KINDS = {
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "decimal(12,2)": DecimalType(12, 2),
    "decimal(22,2)": DecimalType(22, 2),
    "decimal(22,0)": DecimalType(22, 0),
}


def test_a_total_is_worth_what_every_step_to_it_holds() -> None:
    assert _limits(pa.int64(), "int", "bigint") == SumLimits(2**63)
    assert _limits(pa.int64(), "int", "bigint", "int", "bigint") == SumLimits(2**31)
    money = pa.decimal128(22, 2)
    assert _limits(money, "decimal(12,2)", "decimal(22,2)") == SumLimits(10**22, 10**10)


@pytest.mark.parametrize(
    "analysed",
    [
        ("double", "double", "decimal(22,2)"),
        ("decimal(12,2)", "decimal(22,2)", "double", "decimal(22,2)"),
        ("decimal(12,2)", "decimal(22,2)", "decimal(22,0)", "decimal(22,2)"),
        # Not the SUM that is known.
        ("int", "double"),
    ],
)
def test_a_total_that_is_rounded_on_the_way_is_not_added_to(analysed: tuple[str, ...]) -> None:
    assert _limits(pa.decimal128(22, 2), *analysed) is None


@pytest.mark.parametrize(("side", "expected"), [("new", ["b", "b"]), ("old", ["a"])])
def test_a_row_comes_as_often_as_it_came_or_went(side: Side, expected: list[str]) -> None:
    images = pa.table({"k": ["a", "b"], "n": [1, 2], WEIGHT: pa.array([-1, 2], pa.int64())})
    anchor = cast(Any, SimpleNamespace(images=images))

    rows = _changed_rows(anchor, side, ["k"])

    assert rows.to_pydict() == {"k": expected}
