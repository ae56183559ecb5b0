"""Functions of a project, nodes of dbt 1.11 or of on-run-start, are there in every process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.run.shop import FIRST, ORDERS, THEN, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NODES = """
functions:
  - name: net_of_tax
    config: {volatility: deterministic}
    arguments:
      - {name: gross, data_type: "decimal(10,2)"}
      - {name: rate, data_type: "decimal(4,2)", default_value: "0.25"}
    returns: {data_type: "decimal(10,2)"}
  - name: most_paid
    arguments: [{name: least, data_type: "decimal(10,2)"}]
    returns: {data_type: "decimal(10,2)"}
"""
_MODELS = {
    "net": f"""{{{{ config(materialized='view') }}}}
        select order_id, shop_id, {{{{ function('net_of_tax') }}}}(amount) as net from {ORDERS}""",
    "net_totals": """select shop_id, sum(net) as net from {{ ref('net') }} group by shop_id""",
    "doubled": f"select order_id, doubled(amount) as twice from {ORDERS}",
    "above": f"""select order_id, {{{{ function('most_paid') }}}}(amount) as most from {ORDERS}
        where method = 'card'""",
}


def _project(spark: SparkSession, root: Path) -> ProjectRun:
    run = shop_project(spark, root, _MODELS, FIRST)
    (run.project / "functions").mkdir()
    run.edit("functions/_functions.yml", _NODES)
    run.edit("functions/net_of_tax.sql", "gross - cast(gross * rate as decimal(10,2))")
    run.edit("functions/most_paid.sql", f"greatest(least, (select max(amount) from {ORDERS}))")
    config = (run.project / "dbt_project.yml").read_text()
    hook = "create function doubled(x decimal(10,2)) returns decimal(12,2) return x * 2"
    run.edit("dbt_project.yml", f'{config}\non-run-start:\n  - "{hook}"\n')
    return run


# 20 s; tests/integration/test_packages.py has a function in the gate.
@pytest.mark.extended
def test_functions_are_there_in_each_process_and_a_new_body_makes_new_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = _project(spark, tmp_path)
    run.build()
    assert {row["shop_id"]: str(row["net"]) for row in run.rows("mini.net_totals")} == {
        "a": "11.25",
        "b": "5.25",
    }

    for name in ("mini.net_of_tax", "mini.most_paid", "default.doubled"):
        spark.sql(f"drop function if exists {name}")
    run.restart()
    run.deliver("orders", *(order(*it) for it in THEN))
    run.refresh()

    assert strategies(run.newest).items() >= {"net_totals": "full", "doubled": "full"}.items()
    # A function that reads tables reads them as they are: it is recomputed in each batch.
    assert run.differing() == ["above"]
    rows = {row["order_id"]: str(row["most"]) for row in run.rows("mini.above")}
    assert rows == {1: "10.00", 3: "10.00", 5: "10.00"}

    # A row that only a table of the function has.
    run.deliver("orders", order(6, "b", "cash", "99.00", "2026-03-08T07:40:00Z"))
    run.edit("functions/net_of_tax.sql", "gross")
    run.restart()
    run.refresh()

    assert {str(row["most"]) for row in run.rows("mini.above")} == {"99.00"}
    assert {row["shop_id"]: str(row["net"]) for row in run.rows("mini.net_totals")} == {
        "a": "18.00",
        "b": "108.00",
    }
    assert reasons(run.newest)["net_totals"] is not None
    assert run.differing() == ["above"]
