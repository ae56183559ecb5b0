"""A data test is found by file and line, however it is written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.project.graph import DataTest, Project
from livemart.project.test_places import place_of_test

YAML = """\
version: 2
models:
  - name: totals
    data_tests:
      - shop.is_true: {arguments: {expression: "n > 0"}}
      - is_true:
          arguments: {expression: "m > 0"}
      - name: own_name
        test_name: is_true
        arguments: {expression: "m > 1"}
    columns:
      - name: n
        tests: [not_null,
          unique]
      - name: status
        data_tests:
          - accepted_values:
              values: [1, 2]
          - accepted_values: {arguments: {values: [3, 4]}, name: late_ones}
sources:
  - name: raw
    tables:
      - {name: orders, columns: [{name: id, data_tests: [not_null]}]}
"""
TOTALS = "model.shop.totals"


def place(folder: Path, kind: str | None, attached: str | None = TOTALS, **values: Any) -> str:
    (folder / "schema.yml").write_text(YAML, encoding="utf-8")
    source = SimpleNamespace(source_name="raw", name="orders")
    project = SimpleNamespace(directory=str(folder), sources={"source.shop.raw.orders": source})
    known: dict[str, Any] = {
        "file": "schema.yml",
        "name": "t",
        "column_name": None,
        "arguments": {},
    }
    test = SimpleNamespace(kind=kind, attached_to=attached, **{**known, **values})
    return place_of_test(cast(Project, project), cast(DataTest, test))


@pytest.mark.parametrize(
    ("kind", "values", "line"),
    [
        ("is_true", {"arguments": {"expression": "n > 0"}}, 5),
        ("is_true", {"arguments": {"expression": "m > 0"}}, 6),
        ("is_true", {"arguments": {"expression": "m > 1"}, "name": "own_name"}, 8),
        ("not_null", {"column_name": "n"}, 13),
        ("unique", {"column_name": "n"}, 14),
        ("accepted_values", {"column_name": "status", "arguments": {"values": [1, 2]}}, 17),
        ("accepted_values", {"column_name": "status", "name": "late_ones"}, 19),
        # Not found: the nearest that is.
        ("relationships", {"column_name": "n"}, 12),
        ("unique", {}, 3),
    ],
)
def test_a_generic_test_is_where_it_is_listed(
    tmp_path: Path, kind: str, values: dict[str, Any], line: int
) -> None:
    assert place(tmp_path, kind, **values) == f"schema.yml:{line}"


def test_a_test_of_a_source_is_below_its_table(tmp_path: Path) -> None:
    found = place(tmp_path, "not_null", "source.shop.raw.orders", column_name="id")

    assert found == "schema.yml:23"


def test_a_test_that_is_a_file_of_sql_begins_with_its_first_line(tmp_path: Path) -> None:
    assert place(tmp_path, None, None, file="tests/never.sql") == "tests/never.sql:1"


def test_where_the_line_is_not_found_the_file_is_named(tmp_path: Path) -> None:
    assert place(tmp_path, "unique", "model.shop.other") == "schema.yml"
    assert place(tmp_path, "unique", file="package.yml") == "package.yml"
    assert place(tmp_path, "unique", None) == "schema.yml"
