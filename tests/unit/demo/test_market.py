"""The market of the demo: repeatable, and never without an unpleasant record."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo.market import Market

END = datetime(2026, 3, 29, 12, tzinfo=UTC)
PANE = timedelta(minutes=5)


def _small() -> Market:
    return Market(3, restaurants=5, dishes=4, orders_per_day=100, customers=50)


def _contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): Path(str(path)).read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_writes_the_same_files(tmp_path: Path) -> None:
    for name in ("first", "second"):
        market = _small()
        market.history(tmp_path / name, END, days=2)
        market.live_step(tmp_path / name, END, END + PANE)

    assert _contents(tmp_path / "first") == _contents(tmp_path / "second")


def test_a_delivery_counts_every_line_of_its_files(tmp_path: Path) -> None:
    market = _small()

    for delivery in (
        market.history(tmp_path, END, days=2),
        *(
            market.live_step(tmp_path, END + PANE * step, END + PANE * (step + 1))
            for step in range(6)
        ),
    ):
        written = sum(len(Path(str(path)).read_text().splitlines()) for path in delivery.files)
        assert written == delivery.records


def test_every_live_step_has_each_unpleasant_kind(tmp_path: Path) -> None:
    market = _small()
    market.history(tmp_path, END, days=2)

    for step in range(6):
        delivery = market.live_step(tmp_path, END + PANE * step, END + PANE * (step + 1))

        unpleasant = {"late", "corrected", "cancelled", "redelivered", "broken"}
        assert unpleasant <= {kind for kind, count in delivery.counts.items() if count}


def test_a_step_places_as_many_orders_as_it_is_told(tmp_path: Path) -> None:
    market = _small()
    market.history(tmp_path, END, days=1)

    delivery = market.live_step(tmp_path, END, END + timedelta(hours=3), orders=200)
    after = market.live_step(tmp_path, END + timedelta(hours=3), END + timedelta(days=2), orders=0)

    lines = [
        line
        for path in (*delivery.files, *after.files)
        if path.parent.name == "orders"
        for line in Path(str(path)).read_text().splitlines()
    ]
    placed = {
        record["order_id"]
        for record in map(_parsed, lines)
        if record and END <= datetime.fromisoformat(record["ordered_at"]) < END + timedelta(hours=3)
        if record["op"] == "c" and not str(record["order_id"]).startswith("broken")
    }
    assert len(placed) == 200


def test_files_are_handed_over_complete(tmp_path: Path) -> None:
    _small().history(tmp_path, END, days=1)

    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


def test_most_orders_go_to_the_most_popular_restaurant(tmp_path: Path) -> None:
    market = _small()
    delivery = market.history(tmp_path, END, days=5)

    sold: dict[str, int] = {}
    for path in delivery.files:
        if path.parent.name == "orders":
            for record in map(_parsed, Path(str(path)).read_text().splitlines()):
                if record:
                    sold[record["restaurant_id"]] = sold.get(record["restaurant_id"], 0) + 1
    assert max(sold, key=lambda restaurant: sold[restaurant]) == "r0001"


def _parsed(line: str) -> dict[str, str] | None:
    try:
        record: dict[str, str] = json.loads(line)
    except ValueError:
        return None
    return record
