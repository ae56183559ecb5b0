"""Types of a seed that only other databases have are refused before a file is loaded."""

from __future__ import annotations

import pytest

from livemart.project.declared.seed_types import seed_type_mistakes
from livemart.project.yaml_places import Where

WHERE = Where("seeds/prices.yml", "seed prices", {("column_types",): 4})


@pytest.mark.parametrize(
    "kind",
    [
        *("string", "BIGINT", " decimal(18, 2) ", "numeric(28,6)", "timestamp_ntz", "real"),
        *("varchar(256)", "char (3)", "array<string>", "map<string,int>", "interval day to second"),
        *("variant", "string collate UTF8_LCASE", "timestamp without time zone"),
    ],
)
def test_types_of_spark_are_taken(kind: str) -> None:
    assert not seed_type_mistakes({"price": kind}, WHERE)


@pytest.mark.parametrize(
    ("kind", "finding"),
    [
        ("text", "found text, did you mean string?"),
        ("INT64", "found INT64, did you mean bigint?"),
        ("float8", "found float8, did you mean double?"),
        ("timestamptz", "found timestamptz, did you mean timestamp?"),
        ("varchar", "found varchar without a length"),
    ],
)
def test_a_type_of_another_database_is_refused_with_its_place(kind: str, finding: str) -> None:
    (mistake,) = seed_type_mistakes({"price": kind}, WHERE)

    assert mistake.code == "SEED_TYPE_UNKNOWN"
    assert mistake.message == f"seeds/prices.yml:4: seed prices: column_types.price: {finding}"
    assert "target.type" in mistake.hint
