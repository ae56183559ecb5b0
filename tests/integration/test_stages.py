"""A model that is cut in two steps holds the rows of its SQL, whatever becomes of its stage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.inspect.recomputed_tables import RecomputedTables
from livemart.inspect.verify import Comparison
from livemart.plan.sql.flatten import Flat
from tests.equivalence.recomputed import differing
from tests.integration.mini import PROJECT, Mini, sale, visit
from tests.project_run import reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SALES, _VISITS = "{{ source('shop', 'sales') }}", "{{ source('shop', 'visits') }}"
_MODELS = {
    "top_shops": f"select shop_id as Shop_Id, sum(amount) as total, count(*) as n from {_SALES}"
    " group by 1 order by total desc nulls last, shop_id limit 3",
    "busiest": f"select v.shop_id, count(*) as visits from {_VISITS} as v group by v.shop_id"
    " order by max(v.visited_at) desc, v.shop_id limit 2 offset 1",
    "reader": "select Shop_Id, total * 2 as double from {{ ref('top_shops') }}",
}
_TOP, _BUSIEST = "stage.mini.top_shops__1", "stage.mini.busiest__1"


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
def test_the_first_rows_of_groups_follow_every_change(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    run = Mini(spark, tmp_path, flags={"lane": lane})
    sources = (PROJECT / "models" / "_sources.yml").read_text()
    run.replace(sources, **_MODELS)
    run.deliver("sales", *(sale(f"s{n}", "abcde"[n % 5], f"{n}.00") for n in range(1, 21)))
    run.deliver("visits", *(visit("abcd"[n % 4], -n) for n in range(1, 9)))

    def refreshed(*records: dict[str, Any]) -> dict[str, str]:
        if records:
            run.deliver("sales", *records)
        assert run.refresh().exit_code == 0
        assert list(differing(run)) == []
        return {key: it.strategy for key, it in run.newest.stages.items()}

    # A build fills the stages.
    assert run.build().exit_code == 0
    assert {key: it.reason for key, it in run.newest.stages.items()} == {
        _TOP: "BUILD",
        _BUSIEST: "BUILD",
    }
    assert refreshed(sale("s40", "a", "90.00")) == {_TOP: "signed", _BUSIEST: "unchanged"}
    assert strategies(run.newest)["top_shops"] == "staged"
    assert strategies(run.newest)["busiest"] == "unchanged"
    # The winner goes, and another one comes in.
    refreshed(sale("s40", "a", "90.00", updated=1, op="d"), sale("s1", "e", "1.00", updated=2))
    run.deliver("visits", visit("b", 1), visit("z", 2))
    assert refreshed()[_BUSIEST] == "region"
    assert run.differing() == []

    # The engine alone knows of them.
    assert not [it.name for it in spark.catalog.listDatabases() if it.name.startswith("_")]
    results = json.loads((run.runtime.dbt.target_dir / "run_results.json").read_text())["results"]
    assert {it["unique_id"].partition(".")[0] for it in results} <= {"model", "test"}

    # Another limit leaves the stage as it is.
    fewer = _MODELS["top_shops"].replace("limit 3", "limit 2")
    run.replace(sources, **(_MODELS | {"top_shops": fewer}))
    run.restart()
    assert refreshed()[_TOP] == "unchanged"
    assert reasons(run.newest)["top_shops"] == "FINGERPRINT_CHANGED"

    # A stage that is lost is made again.
    (folder,) = (run.warehouse.root / "_livemart_stages").glob("top_shops__*")
    shutil.rmtree(folder)
    run.restart()
    assert refreshed(sale("s41", "b", "70.00"))[_TOP] == "full"
    assert refreshed(sale("s42", "c", "71.00"))[_TOP] == "signed"


# Among sales of one time: which is the newest of its shop?
_NEWEST = f"""
    {{{{ config(meta={{'livemart': {{'refresh': 'strict'}}}}) }}}}
    with newest as (
        select shop_id, amount from {_SALES}
        qualify row_number() over (partition by shop_id order by sold_at desc) = 1
    )
    select amount, count(*) as shops from newest group by amount"""


@pytest.mark.extended
def test_groups_above_a_pick_that_may_tie_follow_it_and_verify_goes_step_by_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Mini(spark, tmp_path)
    sources = (PROJECT / "models" / "_sources.yml").read_text()
    run.replace(sources, newest_amounts=_NEWEST)
    run.deliver("sales", *(sale(f"s{n}", "abc"[n % 3], f"{n}.00") for n in range(12)))

    def compared(end_of_order: str, count: str = "count(*)") -> Comparison:
        def answer(self: RecomputedTables, session: SparkSession, flat: Flat) -> DataFrame:
            text = flat.render(lambda mention: self.names[mention.relation])
            text = text.replace("sold_at desc)", f"sold_at desc{end_of_order})")
            return session.sql(text.replace("count(*)", count))

        with monkeypatch.context() as patched:
            patched.setattr(RecomputedTables, "run", answer)
            (comparison,) = run.verify()
        return comparison

    assert run.build().exit_code == 0
    # A build decides about ties in its own way: the first refresh brings both to one decision.
    assert run.newest.stages == {}
    assert run.refresh().exit_code == 0
    assert run.newest.stages["stage.mini.newest_amounts__1"].strategy == "full"
    # Its rows stay if both have decided alike.
    assert strategies(run.newest)["newest_amounts"] in ("full", "unchanged")

    run.deliver("sales", sale("s20", "b", "20.00"), sale("s21", "d", "21.00"))
    run.refresh()
    assert run.newest.stages["stage.mini.newest_amounts__1"].strategy == "region"
    assert strategies(run.newest) == {"newest_amounts": "signed"}
    assert sum(row["shops"] for row in run.rows("mini.newest_amounts")) == 4

    answers = [compared(", sale_id"), compared(", sale_id desc")]
    assert [it.is_equal for it in answers] == [True, True]
    # One of the two orders at least is not the stored one.
    in_steps = [it for it in answers if "compared step by step" in it.note]
    assert in_steps and all(it.tied for it in in_steps)
    wrong = [compared(", sale_id", "count(*) + 1"), compared(", sale_id desc", "count(*) + 1")]
    assert [it.is_different for it in wrong] == [True, True]
