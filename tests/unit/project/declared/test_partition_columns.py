"""Partition columns whose values Spark 4.2 would store as others are refused by name."""

from __future__ import annotations

import pytest

from livemart.project.declared.partition_columns import kept_time, lost_bytes, lost_time


@pytest.mark.parametrize(
    "kind",
    ["date", "timestamp", "timestamp_ntz", "string", "decimal(10,2)", "double", "boolean", None],
)
def test_other_types_than_bytes_are_kept_or_looked_at_row_by_row(kind: str | None) -> None:
    assert not [*lost_bytes(["k", "unknown"], {"k": kind})]


def test_bytes_are_refused_whatever_the_letter_case() -> None:
    (finding,) = lost_bytes(["day", "`K`"], {"k": "BINARY", "day": "date"})

    assert finding.startswith("found `K`, a binary: ")


def test_a_time_that_spark_would_store_as_another_one_names_model_column_and_way_out() -> None:
    sql = kept_time("a`t", "timestamp", "mart.it's")

    assert sql is not None and sql.endswith(" else `a``t` end")
    for part in ("PARTITION_VALUES_LOST: mart.it\\'s: partition_by: found a`t = ", "timestamp_ntz"):
        assert part in sql
    for kind in ("date", "timestamp_ntz"):
        assert "year(`day`)" in str(kept_time("day", kind, "mart.a"))
        assert "current_timezone(), ', 262,142 years" in str(kept_time("day", kind, "mart.a"))
    assert lost_time("day", "date") == "abs(year(`day`)) >= 262142"
    assert kept_time("word", "string", "mart.a") is lost_time("word", "string") is None
