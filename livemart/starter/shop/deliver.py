"""Delivers sample records: ten more orders of the last minutes, and one corrected order.

Used by hand, `python3 deliver.py`, with any Python from 3.9 on, and by `livemart init` for the
history of the first two days. A delivery is a file that is written under a hidden name and then
renamed.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

LANDING = Path(__file__).resolve().parent / "landing"
SHOPS = ("harbour", "market", "station")
PRODUCTS = {
    "p1": ("Espresso", "2.40"),
    "p2": ("Flat white", "3.60"),
    "p3": ("Cinnamon roll", "3.20"),
    "p4": ("Sourdough loaf", "5.80"),
    "p5": ("Lemonade", "2.90"),
}
HISTORY = timedelta(hours=48)


def deliver_history(landing: Path, now: datetime, count: int = 300) -> None:
    """Deliver all products, and orders that are spread over the last two days."""
    chance = random.Random(1)
    lines = ["product_id,product_name,updated_at"]
    lines += [f"{key},{name},{now - HISTORY:%FT%TZ}" for key, (name, _) in PRODUCTS.items()]
    _write(landing / "products" / "first.csv", lines)
    orders = [
        _order(chance, f"first-{number}", now - HISTORY * (number + 1) / count)
        for number in range(count)
    ]
    _write(landing / "orders" / "first.jsonl", map(json.dumps, orders))


def deliver_more(landing: Path, now: datetime, count: int = 10) -> Path:
    """Deliver orders of the last minutes, and a correction of the newest order of the history."""
    chance = random.Random()
    name = f"{now:%Y%m%dT%H%M%S%f}"
    orders = [
        _order(chance, f"{name}-{number}", now - timedelta(seconds=20 * (number + 1)))
        for number in range(count)
    ]
    first = landing / "orders" / "first.jsonl"
    if first.is_file():
        with first.open(encoding="utf-8") as file:
            corrected = json.loads(file.readline())
        corrected["status"] = chance.choice(("paid", "cancelled"))
        corrected["updated_at"] = now.isoformat()
        orders.append(corrected)
    path = landing / "orders" / f"{name}.jsonl"
    _write(path, map(json.dumps, orders))
    return path


def _order(chance: random.Random, order_id: str, ordered_at: datetime) -> Mapping[str, object]:
    product = chance.choice(tuple(PRODUCTS))
    quantity = chance.randint(1, 4)
    cents = int(PRODUCTS[product][1].replace(".", "")) * quantity
    return {
        "order_id": order_id,
        "shop_id": chance.choice(SHOPS),
        "product_id": product,
        "status": "cancelled" if chance.random() < 0.05 else "paid",
        "quantity": quantity,
        "amount": f"{cents // 100}.{cents % 100:02}",
        "ordered_at": ordered_at.isoformat(),
        "updated_at": ordered_at.isoformat(),
    }


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.rename(path)


if __name__ == "__main__":
    sys.stdout.write(f"delivered {deliver_more(LANDING, datetime.now(timezone.utc))}\n")
