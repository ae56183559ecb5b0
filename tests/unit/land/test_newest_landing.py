from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from livemart.land.newest_landing import newest_landing
from tests.deliveries import Shop, lines, order


def test_the_newest_landing_is_that_of_the_rows_at_a_version(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path)
    first_at = shop.now
    first = shop.land(0, shop.deliver("orders/1.jsonl", lines([order("a")])))
    shop.now += timedelta(minutes=2)
    second = shop.land(1, shop.deliver("orders/2.jsonl", lines([order("b")])))

    def landed_at(versions: object) -> object:
        assert isinstance(versions, dict)
        return newest_landing(shop.warehouse, "bronze.orders", versions["bronze.orders"])

    assert landed_at(first.versions) == first_at
    assert landed_at(second.versions) == shop.now


def test_a_table_without_rows_has_no_landing(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path)
    shop.land(0, shop.deliver("orders/1.jsonl", lines([order("a")])))

    assert newest_landing(shop.warehouse, "bronze.orders", 0) is None
