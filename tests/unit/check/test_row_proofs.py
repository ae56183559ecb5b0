"""The columns that a test wants unique together, and tests that new rows decide."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.bags import WEIGHT
from livemart.check.row_proofs import SHOWN_BY_NEW_ROWS, columns_unique_together
from livemart.project.graph import DataTest


def make_test(kind: str, column: str | None = None, **arguments: Any) -> DataTest:
    return DataTest("test.m.t", "t", kind, column, arguments, "error", "", (), None, "")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (make_test("unique", "`Shop` "), ("Shop",)),
        (make_test("unique_combination_of_columns", combination_of_columns=["a", "b"]), ("a", "b")),
        (make_test("unique_combination", columns=["a"]), ("a",)),
        (make_test("not_null", "a"), ()),
    ],
)
def test_columns_that_are_unique_together(test: DataTest, expected: tuple[str, ...]) -> None:
    assert columns_unique_together(test) == expected


def test_new_rows_show_nothing_of_keys_that_spark_finds_equal_and_arrow_does_not() -> None:
    rows = pa.table({"d": [-0.0, 0.0], WEIGHT: [1, 1]})

    shown = SHOWN_BY_NEW_ROWS["unique"](make_test("unique", "d"), rows, lambda **_: rows)

    assert not shown


@pytest.mark.parametrize(("n", "expected"), [([1, 2], True), ([1, None], False)])
def test_new_rows_show_that_a_column_is_not_null(n: list[int | None], expected: bool) -> None:
    rows = pa.table({"N": n, WEIGHT: [1, 1]})

    shown = SHOWN_BY_NEW_ROWS["not_null"](make_test("not_null", "n"), rows, None)  # type: ignore[arg-type]

    assert shown is expected
