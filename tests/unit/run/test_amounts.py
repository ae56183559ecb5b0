"""How much a run handles, by files and tables alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.project.graph import Project, SourceTable
from livemart.run import amounts
from livemart.run.amounts import has_few_rows, has_little_data
from livemart.settings import Settings, load_settings
from livemart.state.project_graph import keep_graph


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(amounts, "_LITTLE_BYTES", 10)
    monkeypatch.setattr(amounts, "FEW_WAREHOUSE_ROWS", 5)
    for name in ("dbt_project.yml", "profiles.yml"):
        (tmp_path / name).touch()
    (tmp_path / "landing" / "orders").mkdir(parents=True)
    folders = {name: str(tmp_path / name) for name in ("warehouse", "landing")}
    return load_settings({"project_dir": str(tmp_path), **folders}, environ={})


def _landed(settings: Settings, relation: str, count: int) -> None:
    warehouse, rows = Warehouse(settings.warehouse), pa.table({"n": range(count)})
    if not warehouse.exists(relation):
        warehouse.create(relation, rows.schema)
    warehouse.overwrite(relation, rows, Tag(relation, warehouse.version(relation), {}))


@pytest.mark.parametrize(
    ("file", "size", "expected"),
    [
        ("landing/orders/a.jsonl", 10, True),
        ("landing/orders/a.jsonl", 11, False),
        ("seeds/shops.csv", 10, True),
        ("seeds/shops.csv", 11, False),
        # All of its rows are elsewhere, and nothing tells how many.
        ("models/a.sql", 1, False),
    ],
)
def test_files_say_how_much_there_is_before_the_first_pass(
    settings: Settings, file: str, size: int, expected: bool
) -> None:
    path = settings.project_dir / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * size)

    assert has_little_data(settings) is expected


def test_tables_say_it_after_the_first_pass(settings: Settings) -> None:
    (Path(settings.landing) / "orders" / "a.jsonl").write_text("{}")
    _landed(settings, "raw.orders", 3)
    _landed(settings, "mart.totals", 2)
    assert has_little_data(settings)

    _landed(settings, "mart.totals", 3)
    assert not has_few_rows(Warehouse(settings.warehouse))
    assert not has_little_data(settings)


def test_a_source_that_is_no_table_of_the_warehouse_may_be_of_any_size(settings: Settings) -> None:
    (Path(settings.landing) / "orders" / "a.jsonl").write_text("{}")
    source = SourceTable("s.raw.orders", "raw", "orders", "raw", "orders", (), None, None, None, "")
    project = Project("shop", ".", "shop", {source.unique_id: source}, {}, {}, {})
    keep_graph(settings.warehouse, project)
    assert not has_little_data(settings)

    _landed(settings, source.relation, 1)
    assert has_little_data(settings)
