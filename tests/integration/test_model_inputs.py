"""Inputs of models: tables that the project does not declare, and inputs with other columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from tests.integration.mini import Mini, sale, visit
from tests.project_run import reasons, strategies

LABELS = pa.schema([("shop_id", pa.string()), ("label", pa.string())])


def test_a_table_that_the_project_does_not_declare_is_read_at_its_newest_version(
    mini: Mini,
) -> None:
    mini.warehouse.create("legacy.labels", LABELS)
    label(mini, "first", 0)
    mini.edit(
        "models/labelled.sql",
        "select t.shop_id, t.sale_count, l.label from {{ ref('shop_totals') }} as t\n"
        "left join legacy.labels as l on t.shop_id = l.shop_id",
    )
    mini.refresh()
    mini.deliver("sales", sale("4"))

    mini.refresh()

    assert reasons(mini.newest)["labelled"] == "INPUT_NOT_IN_DELTA"
    assert {row["label"] for row in mini.rows("mini.labelled")} == {"first", None}

    label(mini, "second", 1)
    mini.deliver("visits", visit("c"))
    mini.refresh()

    assert {row["label"] for row in mini.rows("mini.labelled")} == {"second", None}
    found = {each.model: each for each in mini.verify()}
    assert not found["labelled"].is_equal and found["labelled"].differences is None
    assert "legacy.labels is not declared" in found["labelled"].note
    assert mini.differing() == ["labelled"]


def label(mini: Mini, text: str, version: int) -> None:
    rows = pa.table({"shop_id": ["a"], "label": [text]}, schema=LABELS)
    mini.warehouse.overwrite("legacy.labels", rows, Tag("legacy", version, {}))


@pytest.mark.extended
@pytest.mark.parametrize(
    "changed",
    [
        "select shop_id, count(*) as visit_count, cast(null as string) as note",
        "select shop_id, cast(count(*) as decimal(20, 0)) as visit_count",
    ],
    ids=["a column more", "another type"],
)
def test_other_columns_of_an_input_reach_the_models_that_read_it(mini: Mini, changed: str) -> None:
    mini.edit("models/all_columns.sql", "select * from {{ ref('visit_counts') }}")
    mini.edit("models/above.sql", "select * from {{ ref('all_columns') }}")
    mini.edit("models/named.sql", "select shop_id, visit_count from {{ ref('visit_counts') }}")
    mini.build()
    mini.edit(
        "models/visit_counts.sql",
        f"{changed} from {{{{ source('shop', 'visits') }}}} group by 1",
    )

    mini.refresh()

    assert reasons(mini.newest)["all_columns"] == "FINGERPRINT_CHANGED"
    assert reasons(mini.newest)["above"] == "FINGERPRINT_CHANGED"
    assert mini.differing() == []

    mini.deliver("visits", visit("c"))
    mini.refresh()

    assert "full" not in strategies(mini.newest).values()
    assert mini.differing() == []
