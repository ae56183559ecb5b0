"""A model whose contract is enforced yields the columns that it promises, or is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.project.graph import Column
from livemart.spark.contracts import contract_breaches, require_contract
from livemart.spark.model_errors import ModelFailedError
from tests.models import make_model

PROMISED = {"shop_id": "string", "amount": "decimal(10,2)"}


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({"amount": "decimal(10,2)", "shop_id": "string"}, []),
        (
            {"amount": "decimal(20,2)", "shop_id": "string"},
            ["amount is decimal(20,2), not decimal(10,2)"],
        ),
        (
            {"amount": "decimal(10,2)", "shop": "string"},
            ["shop (string) is not in it", "shop_id (string) is missing"],
        ),
    ],
)
def test_each_column_that_differs_is_named(actual: dict[str, str], expected: list[str]) -> None:
    assert contract_breaches(PROMISED, actual) == expected


def test_what_spark_says_of_both_is_compared() -> None:
    columns = (Column("`shop_id`", "varchar(10)"), Column("amount", "decimal(10,2)"))
    model = make_model("model.m.totals", is_contracted=True, columns=columns)
    asked: list[str] = []

    def spark(yields: dict[str, str]) -> Any:
        def sql(text: str) -> Any:
            asked.append(text)
            types = yields if text == "query" else PROMISED
            return SimpleNamespace(dtypes=list(types.items()))

        return SimpleNamespace(sql=sql)

    require_contract(spark(PROMISED), model, "query")
    with pytest.raises(ModelFailedError, match=r"models/totals\.sql: .*amount \(decimal") as caught:
        require_contract(spark({"shop_id": "string"}), model, "query")
    require_contract(spark({}), replace(model, is_contracted=False), "query")

    assert "contract" in caught.value.hint
    assert (
        asked[0]
        == "select cast(null as varchar(10)) as `shop_id`, cast(null as decimal(10,2)) as `amount`"
    )
    assert len(asked) == 4
