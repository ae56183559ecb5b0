"""A project whose models come from a package, as public packages are made, is kept fresh.

They hold models, tests and sources that a variable disables, an ephemeral date spine, and a pivot
whose columns are asked for. There are a table that on-run-end fills, a function, a source that the
project overrides, and one that a seed fills.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.project_run import PROJECTS, ProjectRun, reasons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _receipt(number: int, day: int, method: str, amount: str, op: str = "c") -> dict[str, Any]:
    paid_at = f"2026-03-{day:02}T09:00:00Z"
    return {
        "receipt_id": number,
        "method": method,
        "amount": amount,
        "paid_at": paid_at,
        "version": 1 if op == "c" else 2,
        "op": op,
    }


FIRST = (
    _receipt(1, 2, "card", "10.00"),
    _receipt(2, 3, "cash", "5.00"),
    _receipt(3, 3, "card", "1.00"),
)


def _by_day(run: ProjectRun) -> dict[int, tuple[str, ...]]:
    """Return the days that have receipts: count by method, in the order of names, and net sales."""
    rows = run.rows("till_receipts.receipts_by_day")
    assert len(rows) == 7
    return {
        row["day"].day: tuple(str(row[name]) for name in sorted(row.keys() - {"day"}))
        for row in rows
        if row["net"]
    }


# 20 s.
def test_a_package_is_built_refreshed_and_verified(spark: SparkSession, tmp_path: Path) -> None:
    run = ProjectRun(spark, tmp_path, PROJECTS / "till")
    run.deliver("receipts", *FIRST)
    run.build()

    # dbt alone knows no order between the seed and the reader of its source.
    assert {row["label"] for row in spark.table("till.labels").collect()} == {"by card", "in cash"}
    # Columns card, cash, net.
    assert _by_day(run) == {2: ("1", "0", "8.00"), 3: ("1", "1", "4.80")}
    assert [row["day"].day for row in run.rows("till.best_days")] == [2]

    # In a separate process: Spark's catalog holds no function.
    spark.sql("drop function till.net_of_tax")
    run.restart()
    run.deliver("receipts", _receipt(1, 2, "card", "10.00", "d"), _receipt(4, 3, "cash", "5.00"))
    run.refresh()

    assert _by_day(run) == {3: ("1", "2", "8.80")}
    assert [row["day"].day for row in run.rows("till.best_days")] == [3]
    # Written after the snapshot of the build, and taken over by the next one.
    log = run.rows("till_receipts.run_log")
    assert {"receipts_by_day", "net_of_tax", "best_days"} <= {row["node"] for row in log}
    assert {row["status"] for row in log} == {"success", "pass"}
    assert not [row for row in log if "refund" in row["node"]]
    assert (reasons(run.newest)["run_log"] or "").startswith("FILLED_BY_HOOKS")
    assert run.differing() == []
