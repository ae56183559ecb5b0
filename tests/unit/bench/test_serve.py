"""The figures of `make bench-serve` are what their names say."""

from __future__ import annotations

import resource
from decimal import Decimal
from pathlib import Path

import pytest

from bench import serving_store
from bench.serve import percentile, require_files
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.store.stores import changes_of


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(1, 0.5, 1), (100, 0.5, 50), (100, 0.99, 99), (101, 0.99, 100), (1_000, 0.99, 990)],
)
def test_a_percentile_is_the_value_at_the_nearest_rank(
    count: int, share: float, expected: int
) -> None:
    values = [float(value) for value in range(count, 0, -1)]

    assert percentile(values, share) == expected


def test_a_limit_of_files_is_raised_where_it_can_be_and_else_refused() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, before[1]))
    try:
        require_files(200)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300
        require_files(400)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
        with pytest.raises(SystemExit, match=r"open files: found at most .* are needed"):
            require_files(before[1] + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_each_snapshot_changes_what_a_snapshot_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_store, "DAYS", 1)
    url = f"sqlite:///{tmp_path}/serving.db"
    store = Store.open(url)
    committed = [serving_store.publish_number(store, 3, number) for number in (1, 2)]
    store.close()
    reader = StoreReader.open(url)

    with reader.snapshot() as view:
        published = view.published
        metrics = view.rows("restaurant_order_metrics", tenants=frozenset({"r0001"}))
        last = view.rows(
            "restaurant_sales_trend",
            tenants=frozenset({"r0001"}),
            order_by=("pane_started_at",),
            descending=True,
            limit=1,
        )
    changed = changes_of(reader, "restaurant_top_dishes", 1, None, 1_000)
    reader.close()

    assert (published.snapshot_id, published.as_of) == (2, serving_store.as_of(2))
    assert committed[0] < committed[1]
    assert [row["order_count"] for row in metrics] == [6, 98, 674]
    assert metrics[0]["sales_amount"] == Decimal("129.00")
    assert last[0]["pane_started_at"] == serving_store.as_of(2) - serving_store.PANE
    assert {change.op for change in changed.changes} == {"update"}
    assert len(changed.changes) == 27
