"""Compares the columns that a model yields with its contract, as dbt does before it builds one.

Used before a refresh creates a model's table again. Names are compared as they are written; types
are equal if Spark knows them by one name: `varchar(10)` is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from livemart.project.graph import Model
from livemart.spark.model_errors import ModelFailedError
from livemart.spark_sql import quoted, unquoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_contract(spark: SparkSession, model: Model, query: str) -> None:
    """Check a model whose contract is enforced.

    Raises:
        ModelFailedError: naming every column that is not as the contract says.
    """
    if not model.is_contracted:
        return
    promised = ", ".join(
        f"cast(null as {column.data_type or 'void'}) as {quoted(unquoted(column.name))}"
        for column in model.columns
    )
    contract = dict(spark.sql(f"select {promised}").dtypes) if promised else {}
    if breaches := contract_breaches(contract, dict(spark.sql(query).dtypes)):
        raise ModelFailedError(
            model,
            f"{model.file}: its enforced contract is violated: {'; '.join(breaches)}",
            hint="change the model, or the columns of its contract",
        )


def contract_breaches(contract: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """Return the differences between two sets of columns, each a type by name."""
    breaches = []
    for name, promised in contract.items():
        if name not in actual:
            breaches.append(f"{name} ({promised}) is missing")
        elif actual[name] != promised:
            breaches.append(f"{name} is {actual[name]}, not {promised}")
    breaches += [
        f"{name} ({actual[name]}) is not in it" for name in actual.keys() - contract.keys()
    ]
    return sorted(breaches)
