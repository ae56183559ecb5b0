"""A key is remembered for a day, and only if its records were handed over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.land import ingested_keys
from livemart.land.ingested_keys import IngestedKeys, IngestedRequest

ORDERS = "bronze.orders"


def test_keys_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.jsonl"
    keys = IngestedKeys(path, tmp_path)
    for name in ("a", "b"):
        keys.note(ORDERS, f"orders/{name}", {name: ("digest", 3)})
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "b").touch()

    again = IngestedKeys(path, tmp_path)

    # The file of an earlier entry may have been moved away since.
    assert again.find(ORDERS, "a") == IngestedRequest("digest", 3, "orders/a")
    assert again.find(ORDERS, "b") == IngestedRequest("digest", 3, "orders/b")
    assert again.find("bronze.other", "a") is None


def test_what_was_cut_off_before_its_file_appeared_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    keys = IngestedKeys(path, tmp_path)
    keys.note(ORDERS, "orders/a", {"a": ("digest", 3)})
    with path.open("ab") as journal:
        journal.write(b'{"at": "20')

    assert IngestedKeys(path, tmp_path).find(ORDERS, "a") is None


def test_what_could_not_be_written_is_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    keys = IngestedKeys(path, tmp_path)
    keys.note(ORDERS, "orders/a", {"a": ("digest", 3)})
    keys.note(ORDERS, "orders/b", {"b": ("digest", 3)})
    keys.withdraw(ORDERS, {"b": ()})

    assert keys.find(ORDERS, "b") is None
    assert len(path.read_text().splitlines()) == 1


def test_a_day_later_a_key_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    IngestedKeys(path, tmp_path).note(ORDERS, "a", {"a": ("digest", 3)})
    (tmp_path / "a").touch()
    now = datetime.now(UTC)

    assert IngestedKeys(path, tmp_path, now + timedelta(hours=23)).find(ORDERS, "a")
    assert not IngestedKeys(path, tmp_path, now + timedelta(hours=25)).find(ORDERS, "a")


def test_a_process_that_runs_for_days_forgets_them_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingested_keys, "_REMEMBERED", timedelta(0))
    path = tmp_path / "keys.jsonl"
    keys = IngestedKeys(path, tmp_path)
    for number in range(5):
        keys.note(ORDERS, f"orders/{number}", {f"{number}": ("digest", 3)})

    assert len(path.read_text().splitlines()) == 1
    assert [keys.find(ORDERS, f"{number}") is None for number in range(5)] == [True] * 4 + [False]
