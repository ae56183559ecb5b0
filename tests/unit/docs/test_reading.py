"""The documented recipes for other readers run unchanged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from livemart.inspect.published_tables import published_tables
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
