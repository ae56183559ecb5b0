"""`verify` distinguishes ties from differences in every table whose order may tie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.inspect import tied_groups
from livemart.inspect.verify import Comparison, render_comparison, verify_models
from tests.integration.run.shop import ORDERS, order, shop_project
from tests.project_run import ProjectRun, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAY = "cast(ordered_at as date)"
_MODELS = {
    "newest": f"""select shop_id, method, amount from {ORDERS}
        qualify row_number() over (partition by shop_id order by {_DAY} desc) = 1""",
    "steps": f"""select shop_id, order_id,
            lag(method) over (partition by shop_id order by {_DAY}) as before,
            sum(amount) over (
                partition by shop_id order by {_DAY} rows unbounded preceding
            ) as so_far
        from {ORDERS}""",
    "some": f"""select shop_id, any_value(method) as method, sum(cast(amount as double)) as total
        from {ORDERS} group by shop_id""",
    # Behind the year 9999.
    "far": f"""select shop_id,
            any_value(date_add(date'9999-12-31', cast(order_id as int))) as day
        from {ORDERS} group by shop_id""",
    "by_method": """select method, count(*) as shops from {{ ref('newest') }} group by method""",
}
# Two orders of a tie; c has one; those of b on the last day tie, with different methods.
_ORDERS = (
    (1, "a", "card", "10.00", "2026-03-04T02:00:00Z"),
    (2, "a", "cash", "5.00", "2026-03-04T15:00:00Z"),
    (3, "b", "card", "7.00", "2026-03-07T08:00:00Z"),
    (4, "b", "cash", "1.00", "2026-03-08T08:00:00Z"),
    (5, "b", "voucher", "2.00", "2026-03-08T09:00:00Z"),
    (6, "c", "card", "2.50", "2026-03-08T09:00:00Z"),
)


# 30 s.
@pytest.mark.extended
def test_verify_knows_a_tie_from_a_difference(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No more than two rows tie.
    monkeypatch.setattr(tied_groups, "WAYS", 8)
    run = shop_project(spark, tmp_path, _MODELS, _ORDERS)
    run.build()
    [picked] = [row["method"] for row in run.rows("mini.newest") if row["shop_id"] == "a"]
    other, amount = ("cash", "5.00") if picked == "card" else ("card", "10.00")

    def store(model: str, change: str) -> None:
        spark.sql(f"update mini.{model} set {change}")

    # Another of the rows that tie; a value that another row lends; the last digit of a sum.
    store("newest", f"method = '{other}', amount = {amount} where shop_id = 'a'")
    store("steps", "before = 'voucher' where order_id = 3")
    store("far", "day = date'+10000-01-04' where shop_id = 'b'")
    store("some", "total = total + 0.000000000001, method = 'voucher' where shop_id = 'b'")
    told = _verified(run, spark)
    assert (told["newest"].is_equal, told["newest"].tied) == (True, ("shop_id=a",))
    assert "1 group of rows ties: another answer is stored" in told["newest"].note
    assert "  ties: shop_id=a" in render_comparison(told["newest"], lists_ties=True)
    assert told["steps"].is_different
    assert told["some"].is_equal
    assert told["far"].is_equal
    # Models that read it are compared with a recompute from the stored rows.
    assert told["by_method"].is_different == (picked != other)

    # A mixture of two rows that tie; a total of what does not tie; a value that no row has.
    store("newest", f"method = '{picked}' where shop_id = 'a'")
    store("steps", "before = null where order_id = 3")
    store("steps", "so_far = so_far + 1 where order_id = 6")
    store("some", "method = 'voucher' where shop_id = 'a'")
    store("far", "day = date'+12026-01-01' where shop_id = 'b'")
    told = _verified(run, spark)
    assert [told[name].is_different for name in ("newest", "steps", "some", "far")] == [True] * 4
    assert "day=+12026-01-01" in render_comparison(told["far"])

    # A right answer beside a row that does not tie.
    store("newest", f"method = '{other}' where shop_id = 'a'")
    store("newest", "amount = 3.00 where shop_id = 'c'")
    told = _verified(run, spark)
    assert told["newest"].is_different
    assert "besides, 1 group of rows ties, as is right" in told["newest"].note


_LISTS = {
    "listed": f"""select shop_id, collect_list(method) as methods, count(*) as orders
        from {ORDERS} group by shop_id""",
    "joined": f"""select shop_id, array_join(collect_list(method), '+') as methods
        from {ORDERS} group by shop_id""",
    "some": f"""select shop_id, count(*) as orders, element_at(collect_list(method), 1) as method
        from {ORDERS} group by shop_id""",
}


# 30 s.
@pytest.mark.extended
def test_verify_knows_another_order_of_a_list_from_a_difference(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, _LISTS, _ORDERS)
    run.build()
    run.deliver("orders", order(9, "a", "card", "1.00", "2026-03-09T08:00:00Z"))
    run.refresh()
    assert strategies(run.newest) == dict.fromkeys(_LISTS, "region")
    assert not any(told.is_different for told in _verified(run, spark).values())

    spark.sql("update mini.listed set methods = reverse(methods)")
    spark.sql("update mini.joined set methods = concat_ws('+', reverse(split(methods, '[+]')))")
    told = _verified(run, spark)
    assert told["listed"].is_equal
    assert told["listed"].note == "other orders of the same elements: methods"
    assert told["joined"].is_equal
    assert told["joined"].note == "other orders of the same elements: methods"
    # Another value may be right, and which ones are is not known.
    spark.sql("update mini.some set method = 'cash'")
    told = _verified(run, spark)
    assert (told["some"].is_equal, told["some"].is_different) == (False, False)
    assert told["some"].note == "depends on the order of rows: method"

    spark.sql("update mini.listed set methods = array('card') where shop_id = 'a'")
    assert _verified(run, spark)["listed"].is_different
    spark.sql("update mini.joined set methods = 'cash' where shop_id = 'a'")
    assert _verified(run, spark)["joined"].is_different
    spark.sql("update mini.some set orders = 7 where shop_id = 'b'")
    assert _verified(run, spark)["some"].is_different


def _verified(run: ProjectRun, spark: SparkSession) -> dict[str, Comparison]:
    """Return the report about the current tables."""
    newest = run.newest
    now = replace(
        newest,
        models={
            unique_id: replace(
                state, version=run.warehouse.version(run.runtime.project.models[unique_id].relation)
            )
            for unique_id, state in newest.models.items()
        },
    )
    comparisons = verify_models(spark, run.warehouse, run.runtime.project, now)
    return {comparison.model: comparison for comparison in comparisons}
