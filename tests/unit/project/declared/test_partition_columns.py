"""Partition columns whose values Spark 4.2 would store as others are refused by name."""

from __future__ import annotations

import pytest

from livemart.project.declared.partition_columns import kept_instant, lost_bytes


@pytest.mark.parametrize(
    "kind",
    ["date", "timestamp", "timestamp_ntz", "string", "decimal(10,2)", "double", "boolean", None],
)
def test_other_types_than_bytes_are_kept_or_looked_at_row_by_row(kind: str | None) -> None:
    assert not [*lost_bytes(["k", "unknown"], {"k": kind})]


def test_bytes_are_refused_whatever_the_letter_case() -> None:
    (finding,) = lost_bytes(["day", "`K`"], {"k": "BINARY", "day": "date"})

    assert finding.startswith("found `K`, a binary: ")


def test_an_instant_that_the_clock_gives_back_as_another_one_names_model_column_and_way_out() -> (
    None
):
    sql = kept_instant("a`t", "mart.it's")

    assert sql.startswith("if(cast(cast(`a``t` as string) as timestamp) <=> `a``t`, `a``t`, ")
    for part in ("PARTITION_VALUES_LOST: mart.it\\'s: partition_by: found a`t = ", "timestamp_ntz"):
        assert part in sql
