"""Sample orders are whole files, a history is the same each time, a correction is of its newest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.starter.shop.deliver import HISTORY, PRODUCTS, deliver_history, deliver_more

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_history_is_the_same_each_time_and_reaches_over_two_days(tmp_path: Path) -> None:
    for name in ("one", "other"):
        deliver_history(tmp_path / name, NOW)

    one, other = (records(tmp_path / name / "orders" / "first.jsonl") for name in ("one", "other"))
    times = [datetime.fromisoformat(order["ordered_at"]) for order in one]
    assert one == other
    assert min(times) == NOW - HISTORY and max(times) < NOW
    assert {order["product_id"] for order in one} == set(PRODUCTS)


def test_a_delivery_ends_in_a_correction_that_counts(tmp_path: Path) -> None:
    deliver_history(tmp_path, NOW)
    (first, *_) = records(tmp_path / "orders" / "first.jsonl")

    path = deliver_more(tmp_path, NOW + timedelta(minutes=5))

    *fresh, corrected = records(path)
    assert len({order["order_id"] for order in fresh}) == 10
    assert all(order["ordered_at"] > NOW.isoformat() for order in fresh)
    changed = {name for name in first if corrected[name] != first[name]}
    assert "updated_at" in changed <= {"updated_at", "status"}
    assert corrected["updated_at"] > first["updated_at"]


def test_without_a_history_there_is_nothing_to_correct(tmp_path: Path) -> None:
    assert len(records(deliver_more(tmp_path, NOW))) == 10


def test_a_file_has_its_name_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, target: Path) -> None:
        assert path.name.startswith(".") and path.read_text(encoding="utf-8").endswith("\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", fail)

    with pytest.raises(KeyboardInterrupt):
        deliver_more(tmp_path, NOW)

    assert [path.name[0] for path in tmp_path.glob("orders/*")] == ["."]
