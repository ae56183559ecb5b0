"""A condition of a data test that compares nothing is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.project.declared.data_test_conditions import compares, condition_mistakes
from livemart.project.declared.node_files import NodeFiles
from livemart.project.graph import DataTest, Project
from tests.models import make_model

YAML = """\
models:
  - name: totals
    columns:
      - name: n
        data_tests:
          - unique
          - not_null:
              config: {severity: error,
                error_if: many}
          - accepted_values:
              values: [1]
              config: {warn_if: few}
"""
SQL = "{{ config(\n  warn_if='10'\n) }}\nselect 1"
PROJECT = "name: shop\ndata_tests:\n  shop:\n    +error_if: '>'\n"
TOTALS = "model.shop.totals"


@pytest.mark.parametrize(
    "condition", [">10", " = 0", "!= 0", "<> 1", "between 1 and 5", "NOT IN (1)", "% 2 = 0"]
)
def test_comparisons_are_taken(condition: str) -> None:
    assert compares(condition)


@pytest.mark.parametrize("condition", ["many", "10", ">", "", "betweens 1", "> "])
def test_other_words_compare_nothing(condition: str) -> None:
    assert not compares(condition)


def _test(name: str, file: str, **values: Any) -> DataTest:
    known: dict[str, Any] = {
        "kind": None,
        "column_name": None,
        "arguments": {},
        "severity": "error",
        "compiled_code": "",
        "depends_on": (),
        "attached_to": None,
    }
    return DataTest(unique_id=f"test.shop.{name}", name=name, file=file, **{**known, **values})


def test_each_line_is_named_with_the_tests_that_it_holds_for(tmp_path: Path) -> None:
    for file, text in {"m.yml": YAML, "few.sql": SQL, "dbt_project.yml": PROJECT}.items():
        (tmp_path / file).write_text(text)
    column = {"attached_to": TOTALS, "column_name": "n"}
    tests = [
        _test("there", "m.yml", kind="not_null", error_if="many", **column),
        _test("later", "m.yml", kind="accepted_values", warn_if="few", **column),
        _test("few", "few.sql", warn_if="10"),
        *(_test(f"t{n}", "m.yml", kind="unique", error_if=">", **column) for n in range(5)),
        _test("fine", "m.yml", kind="unique", warn_if="> 3", **column),
    ]
    project = Project(
        "shop",
        str(tmp_path),
        "shop",
        {},
        {TOTALS: make_model(TOTALS)},
        {it.unique_id: it for it in tests},
        {},
    )
    nodes = {it.unique_id: SimpleNamespace(fqn=["shop", it.name]) for it in tests}

    found = condition_mistakes(SimpleNamespace(nodes=nodes), project, NodeFiles(tmp_path, "shop"))

    assert [f"{it.code}: {it.message}" for it in found] == [
        "TEST_CONDITION_INVALID: dbt_project.yml:4: test t0, t1, t2 and 2 more: error_if: found >",
        "TEST_CONDITION_INVALID: few.sql:2: test few: warn_if: found 10",
        "TEST_CONDITION_INVALID: m.yml:9: test there: error_if: found many",
        "TEST_CONDITION_INVALID: m.yml:12: test later: warn_if: found few",
    ]
