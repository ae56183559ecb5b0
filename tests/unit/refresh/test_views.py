"""Views of whole small tables that stay from one batch to the next."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.delta.warehouse import Warehouse
from livemart.plan.sql.template import template
from livemart.refresh import views
from livemart.refresh.pinned_table import PinnedTable
from livemart.refresh.views import BatchViews, SharedViews
from tests.frames import frame_of


class Session:
    """A session that says which views it forgets."""

    def __init__(self, dropped: list[str]) -> None:
        self.catalog = SimpleNamespace(dropTempView=dropped.append)


def test_a_table_is_read_once_and_forgotten_when_it_has_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create("m.shops", pa.schema([("shop", pa.string())]))
    dropped: list[str] = []
    session = Session(dropped)
    made: list[str] = []
    monkeypatch.setattr(views, "to_view_of", lambda spark, name, rows: made.append(name))
    shared = SharedViews()

    first = shared.rows(PinnedTable(warehouse, "m.shops", 0))
    again = shared.rows(PinnedTable(warehouse, "m.shops", 0))
    for _ in range(2):
        shared.register(cast(Any, session), PinnedTable(warehouse, "m.shops", 0))
    shared.keep({"m.shops": 0})
    kept = list(dropped)
    shared.keep({"m.shops": 1})

    assert again is first
    assert made == ["__whole_m__shops_0"]
    assert (kept, dropped) == ([], made)


def test_a_statement_is_repeated_if_it_ran_in_a_batch_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    class Statements:
        def sql(self, text: str) -> SimpleNamespace:
            return frame_of(pa.table({"n": [1]}))

    def session_for(spark: object, *_: object, is_repeated: bool) -> Statements:
        seen.append(is_repeated)
        return Statements()

    monkeypatch.setattr("livemart.spark.arrow_views.session_for", session_for)
    monkeypatch.setattr("livemart.spark.arrow_views.to_view_of", lambda spark, name, rows: None)
    shared = SharedViews()
    for batch, text in enumerate(("select 1 from ", "select 1 from ", "select 2 from ")):
        batch_views = BatchViews(cast(Any, None), f"__m__sums_{batch}", shared)
        view = batch_views.of_rows("new_0", pa.table({"n": [1]}))
        batch_views.query(template(text, view))

    assert seen == [False, True, False]
