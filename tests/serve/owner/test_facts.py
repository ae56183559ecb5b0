"""Facts are rows of one restaurant at one snapshot, by window, and only of those that are known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from livemart.serve.http.problems import ProblemError
from livemart.serve.owner.facts import Facts, end_of, first_window, has_owner_models, read_facts
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView
from tests.store.stores import NOON, Order, fill_store, reference_tables

ORDERS = [
    Order("o1", "r1", "c1", NOON - timedelta(hours=30), (("d1", 3), ("d2", 1))),
    Order("o2", "r1", "c2", NOON - timedelta(minutes=7), (("d2", 2),)),
    Order("o3", "r2", "c1", NOON - timedelta(minutes=7), (("d3", 1),)),
]


@pytest.fixture
def view(tmp_path: Path) -> Iterator[SnapshotView]:
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables(ORDERS))
    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        yield view


def test_facts_are_of_the_restaurants_that_the_store_knows(view: SnapshotView) -> None:
    facts = read_facts(view, ["r1", "r9"])

    assert list(facts) == ["r1"]
    (known,) = facts.values()
    assert known.windows == ["1h", "24h", "168h"]
    assert [known.of_window(hours)["order_count"] for hours in (1, 24, 168)] == [1, 1, 2]
    assert [row["dish_rank"] for row in known.dishes[168]] == [1, 2]
    assert {row["restaurant_id"] for rows in known.dishes.values() for row in rows} == {"r1"}
    # Only of the last hour, while the first one may be much earlier.
    assert len(known.panes.starts) == 1
    assert known.first_pane == NOON - timedelta(hours=30)


def test_a_window_that_a_project_does_not_have_is_refused_by_name(view: SnapshotView) -> None:
    known = read_facts(view, ["r1"])["r1"]
    less = replace(known, metrics={24: known.metrics[24]})

    assert less.windows == ["24h"]
    with pytest.raises(ProblemError, match="windows here are 24h; found 168h"):
        less.of_window(168)


def test_windows_end_at_as_of_or_for_a_project_without_a_clock_at_its_publication(
    view: SnapshotView,
) -> None:
    published = view.published
    without = replace(published, as_of=None)

    assert end_of(published) == published.as_of == NOON
    assert end_of(without) == published.published_at
    assert Facts(without, "r1", {}, {}, read_facts(view, ["r1"])["r1"].panes, None).as_of


def test_a_page_begins_with_a_day_or_the_shortest_window_that_there_is(
    view: SnapshotView, tmp_path: Path
) -> None:
    assert first_window(view, None) == first_window(view, frozenset({"r1"})) == "24h"
    assert first_window(view, frozenset({"r9"})) is None

    tables = reference_tables(ORDERS)
    metrics = tables["restaurant_order_metrics"]
    hours = metrics.column("window_hours").to_pylist()
    less = metrics.filter([value != 24 for value in hours])
    url = f"sqlite:///{tmp_path}/other.db"
    fill_store(url, tables | {"restaurant_order_metrics": less})
    with closing(StoreReader.open(url)) as reader, reader.snapshot() as other:
        assert first_window(other, None) == "1h"


def test_in_another_project_there_is_no_owner(tmp_path: Path) -> None:
    tables = reference_tables(ORDERS)
    del tables["restaurant_top_dishes"]
    url = f"sqlite:///{tmp_path}/less.db"
    fill_store(url, tables)

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        assert not has_owner_models(view)
        assert read_facts(view, ["r1"]) == {} and first_window(view, None) is None
