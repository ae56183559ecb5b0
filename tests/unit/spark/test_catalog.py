"""Which folders of a warehouse are tables."""

from __future__ import annotations

from pathlib import Path

from livemart.spark.catalog import name_of, stored_tables


def test_folders_with_a_log_are_tables_and_hidden_ones_hold_none(tmp_path: Path) -> None:
    for name in ("mart/b", "mart/a", "bronze/_deletes_x", "_livemart/snapshots", ".tmp/c"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    (tmp_path / "mart" / "no_table").mkdir()
    (tmp_path / "mart" / "file").write_text("")

    assert list(stored_tables(tmp_path)) == ["bronze._deletes_x", "mart.a", "mart.b"]
    assert list(stored_tables(tmp_path / "missing")) == []


def test_names_are_quoted_part_by_part() -> None:
    assert name_of("raw data.or`ders.x") == "`raw data`.`or``ders.x`"
