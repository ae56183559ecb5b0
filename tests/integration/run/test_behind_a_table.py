"""Clauses that may follow a table's name, but not a subquery, are computed in each refresh."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.mini import Mini, sale, visit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = "{{ source('shop', 'sales') }}"
MODELS = {
    "all_of_it": f"select sale_id from {SALES} tablesample (100 percent)",
    "some_rows": f"select s.sale_id from {SALES} tablesample (1000 rows) as s",
    "files": f"select sale_id from {SALES} where _metadata.file_name like '%.parquet'",
    "as_table": f"with s as (table {SALES}) select sale_id from s",
    "hinted": f"select /*+ broadcast(sales), coalesce(1) */ sale_id from {SALES}",
    "first_version": f"select sale_id from {SALES} version as of 0",
}


@pytest.mark.extended
def test_it_is_recomputed_and_never_a_crash(spark: SparkSession, tmp_path: Path) -> None:
    mini = Mini(spark, tmp_path)
    for name, text in MODELS.items():
        mini.edit(f"models/{name}.sql", text)
    mini.deliver("sales", sale("1"), sale("2", "b"))
    mini.deliver("visits", visit("a"))
    mini.build()
    mini.deliver("sales", sale("3", "c"))
    mini.refresh()

    assert mini.newest.set_aside == {}
    found = {name: len(mini.rows(f"mini.{name}")) for name in MODELS}
    assert found == {**dict.fromkeys(MODELS, 3), "first_version": 0}
    # A second run would give other rows, so nothing can say which ones are right.
    assert {it.model: it.note for it in mini.verify() if not it.is_equal} == {
        **dict.fromkeys(("all_of_it", "some_rows"), "cannot be recomputed: TABLESAMPLE is random"),
        "files": "cannot be recomputed: _metadata.file_name tells which file holds a row, and rows "
        "move",
        "first_version": "cannot be recomputed: an older version of a table",
    }
