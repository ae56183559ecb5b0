"""Other readers of a table that the small lane writes find the same rows with and without bounds.

deltalake 1.6.6 (its Arrow dataset, and DataFusion), DuckDB 2.0 over that dataset, as the documents
say, and Polars 2.1. What they make of NaN and of zeros differs: each is compared with itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from tests.other_readers import (
    AWKWARD,
    OPERATORS,
    READERS,
    WITH_NAN,
    Columns,
    files_of,
    predicates,
    publish,
    without_bounds,
)

_CASES = [
    # DuckDB sees bounds as deltalake interprets them.
    pytest.param("deltalake", AWKWARD, ("=",), id="deltalake"),
    pytest.param("deltalake", WITH_NAN, OPERATORS, id="deltalake, NaN"),
    *(
        pytest.param(reader, columns, OPERATORS, id=f"{reader}, {name}", marks=pytest.mark.extended)
        for reader in READERS
        for name, columns in (("all", AWKWARD), ("all with NaN", WITH_NAN))
    ),
]


@pytest.mark.parametrize(("reader", "columns", "operators"), _CASES)
def test_a_filter_on_any_column_finds_its_rows(
    tmp_path: Path, reader: str, columns: Columns, operators: tuple[str, ...]
) -> None:
    files = files_of(columns)
    published = publish(Warehouse(tmp_path), "mart.awkward", files)
    ask = READERS[reader](published, columns)
    right = READERS[reader](without_bounds(tmp_path / "boundless", files), columns)

    asked = list(predicates(columns, operators))
    wrong = [
        (asked_for, found, expected)
        for asked_for in asked
        if (found := ask(*asked_for)) != (expected := right(*asked_for))
    ]

    assert wrong == []
    assert len(asked) > 20
