"""Names of every kind, in every strategy and both lanes: what is kept is what the SQL gives."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.plan.sql.names import is_plain
from tests.integration.mini import Mini
from tests.project_run import NOON, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = Path(__file__).parents[1] / "projects" / "names" / "models"
EXPECTED = {
    "appended": "append",
    "linear": "signed",
    "groups": "signed",
    "groups_above": "signed",
    "region_null": "region",
    "region_odd": "region",
    "joined": "signed",
    "united": "region",
    "exploded": "signed",
    "exploded_region": "region",
    "framed": "region",
    "running": "region",
    "windowed": "signed",
    "over_view": "signed",
    "over_view_region": "region",
    "partitioned": "signed",
    "helpers": "signed",
    "helpers_region": "region",
    "mapped": "signed",
    "map_keys": "region",
    "everything": "signed",
}


# One model of each strategy, in which the oddest names are.
FEWEST = ("appended", "groups", "linear", "region_odd", "running", "exploded", "everything")


@pytest.fixture
def mini(spark: SparkSession, tmp_path: Path) -> Mini:
    mini = Mini(spark, tmp_path)
    for folder in ("models", "tests", "seeds"):
        shutil.rmtree(mini.project / folder, ignore_errors=True)
    shutil.copytree(MODELS, mini.project / "models")
    return mini


# 25 s; the gate's one refresh of every strategy in the large lane.
def test_names_are_kept_by_a_model_of_each_strategy_in_both_lanes(mini: Mini) -> None:
    for path in (mini.project / "models").iterdir():
        if path.suffix == ".sql" and path.stem not in FEWEST:
            path.unlink()
    chance = random.Random(13)
    deliver(mini, chance, range(40), 0)
    mini.build()

    for batch, lane in enumerate(("small", "large"), start=1):
        mini.restart()
        mini.pipeline(lane=lane)
        deliver(mini, chance, range(35 - batch, 45), batch)
        mini.refresh()

        assert strategies(mini.newest) == {name: EXPECTED[name] for name in FEWEST}, lane
        assert mini.differing() == [], lane


@pytest.mark.extended
@pytest.mark.parametrize(
    "lanes",
    [
        pytest.param(("small", "large"), id="one batch in each lane"),
        pytest.param(("small",) * 4, id="small lane", marks=pytest.mark.nightly),
        pytest.param(("large",) * 4, id="large lane", marks=pytest.mark.nightly),
    ],
)
def test_every_name_is_kept_by_every_strategy(mini: Mini, lanes: tuple[str, ...]) -> None:
    chance = random.Random(13)
    deliver(mini, chance, range(40), 0)
    mini.pipeline(lane=lanes[-1])
    mini.build()

    for batch, lane in enumerate(lanes, start=1):
        mini.restart()
        mini.pipeline(lane=lane)
        deliver(mini, chance, [chance.randrange(45) for _ in range(9)], batch)
        mini.refresh()

        wrong = {
            name: kind
            for name, kind in strategies(mini.newest).items()
            if kind not in ("unchanged", EXPECTED.get(name, kind))
        }
        assert wrong == {}, (batch, {name: reasons(mini.newest)[name] for name in wrong})
        assert mini.differing() == [], batch
    landed = mini.warehouse.read("bronze.sales").to_pylist()
    assert {row["_rescued_data"] for row in landed} == {None}
    assert "warn" in mini.newest.tests.values()
    assert set(mini.newest.tests.values()) <= {"pass", "warn"}


def deliver(mini: Mini, chance: random.Random, numbers: Any, batch: int) -> None:
    """Put sales of these numbers, some of them deletes, and visits below the landing folder."""
    mini.deliver("sales", *(sale(chance, number, batch) for number in dict.fromkeys(numbers)))
    visits = [
        {
            "SHOPID": chance.choice("abc"),
            "group": chance.choice(["x", None]),
            "timestamp": NOON.replace(minute=chance.randrange(60)).isoformat(),
            "_old_count": chance.randrange(3),
        }
        for _ in range(3)
    ]
    mini.deliver("visits", *visits)


def sale(chance: random.Random, number: int, batch: int) -> dict[str, Any]:
    at = NOON.replace(hour=chance.choice([10, 11]), minute=chance.randrange(60))
    return {
        "größe.id": f"n{number}",
        "ShopId": chance.choice("abc"),
        "größe": chance.choice(["L", "M", "XL", None]),
        "Amount": f"{chance.randrange(1, 999) / 100:.2f}",
        "SoldAt": at.isoformat(),
        "order": batch,
        "Select": "d" if batch and chance.random() < 0.2 else "c",
        "null": chance.choice(["n", "null", None]),
        "it's": chance.choice(["it's", None]),
        "日本": chance.randrange(2),
        "İd": chance.choice(["i", "İ"]),
        "a`b": chance.choice(["`", "``"]),
        "50%[x]": "%",
        "Tags": [{"Größe": chance.choice("LM"), "order": chance.randrange(5)} for _ in range(2)],
        "_weight": chance.randrange(3),
        "w0": chance.randrange(3),
        "low": chance.randrange(2),
        "q": {"w0": chance.randrange(2)},
    }


@pytest.mark.extended
def test_spark_reads_a_plain_name_as_a_column(spark: SparkSession) -> None:
    """No word of Spark's that is printed without quotes means anything else to it."""
    rows = spark.sql("select keyword from sql_keywords()").collect()
    words = [row[0].lower() for row in rows]
    plain = [word for word in words if is_plain(word)]
    listed = ", ".join(f"{place} as `{word}`" for place, word in enumerate(plain))
    spark.sql(f"select {listed}").createOrReplaceTempView("words")

    bare = spark.sql(f"select {', '.join(f'{w} as w{n}' for n, w in enumerate(plain))} from words")
    first = spark.sql(" union all ".join(f"select distinct {w} as w0 from words" for w in plain))

    assert [*bare.collect()[0]] == list(range(len(plain)))
    assert [row[0] for row in first.collect()] == list(range(len(plain)))
