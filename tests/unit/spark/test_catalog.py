"""Names in the catalog of Spark."""

from __future__ import annotations

from livemart.spark.catalog import name_of


def test_names_are_quoted_part_by_part() -> None:
    assert name_of("raw data.or`ders.x") == "`raw data`.`or``ders.x`"
