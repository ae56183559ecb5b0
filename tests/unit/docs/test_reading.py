"""The documented recipes for other readers run unchanged."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.warehouse import Warehouse
from livemart.inspect.published_tables import published_tables
from tests.other_readers import publish
from tests.unit.inspect.small_mart import Mart

_TEXT = (Path(__file__).parents[3] / "docs" / "reading.md").read_text(encoding="utf-8")
PANDAS, DUCKDB, POLARS, SPARK = re.findall(r"```python\n(.*?)```", _TEXT, re.S)


def test_pandas_and_duckdb_read_what_is_published_and_not_what_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mart = Mart(tmp_path / "a warehouse 100%")
    mart.batch()
    mart.batch(status="held")
    (tmp_path / "warehouse").symlink_to(mart.root)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}

    exec(PANDAS, names)
    exec(DUCKDB, names)

    assert names["frame"]["name"].to_list() == ["v1"]
    assert names["answer"] == [(1,)]


def test_polars_reads_what_is_published(tmp_path: Path) -> None:
    mart = Mart(tmp_path / "warehouse")
    mart.batch()
    mart.batch(status="held")
    [totals] = [t for t in published_tables(mart.root) if t.relation == "mart.totals"]
    names: dict[str, Any] = {"totals": totals}

    exec(POLARS, names)

    assert names["count"] == 1


def test_a_filter_on_money_finds_its_rows(tmp_path: Path) -> None:
    """deltalake 1.6.6 takes a missing bound of a decimal for NULL, and passes over its file."""
    amounts = [Decimal(it) for it in ("-1.00", "0.00", "12.50", "99999999.99")]
    rows = pa.table({"id": [1, 2, 3, 4], "amount": pa.array(amounts, pa.decimal128(10, 2))})
    folder = publish(Warehouse(tmp_path), "mart.totals", [rows])
    names: dict[str, Any] = {
        "DeltaTable": DeltaTable,
        "totals": SimpleNamespace(path=folder, version=1),
    }

    exec(DUCKDB.replace("id > 0", "amount > 0"), names)
    exec(POLARS.replace('polars.col("id") > 0', 'polars.col("amount") > 0'), names)
    frame = DeltaTable(folder).to_pandas(filters=[("amount", ">", Decimal(0))])

    assert names["answer"] == [(2,)]
    assert names["count"] == 2
    assert frame["id"].to_list() == [3, 4]
