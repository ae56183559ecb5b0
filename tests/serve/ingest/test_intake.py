"""Records are taken by HTTP for sources of lines, under each name that is one's alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from livemart.project.graph import SourceTable
from livemart.serve.ingest.intake import by_names, open_intake, takes_records
from tests.deliveries import source
from tests.serve.apps import make_settings

LINE = {"line": "string"}


@pytest.mark.parametrize(
    ("each", "takes"),
    [
        (source("orders"), True),
        (source("lines", LINE, format="text", path="lines/*.log"), True),
        (source("table", format="csv", path="table/*.csv"), False),
        (source("rows", format="parquet", path="rows/*.parquet"), False),
        # No name could be given to what is taken.
        (source("one", path="orders/the-one.jsonl"), False),
        (source("log", kind="kafka"), False),
        (replace(source("static"), stream=None), False),
    ],
    ids=lambda value: value.name if isinstance(value, SourceTable) else str(value),
)
def test_a_source_takes_what_can_be_handed_over_line_by_line(
    each: SourceTable, takes: bool
) -> None:
    assert takes_records(each) is takes


def test_a_name_that_two_sources_have_is_nobodys() -> None:
    orders = source("orders")
    other = replace(orders, unique_id="source.test.web.orders", source_name="web", schema="web")

    names = by_names([orders, other])

    assert "orders" not in names
    assert names["shop.orders"] is orders and names["web.orders"] is other


def test_the_door_is_shut_unless_it_is_opened(tmp_path: Path) -> None:
    with open_intake(make_settings(tmp_path)) as intake:
        assert intake is None
