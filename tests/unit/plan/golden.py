"""Golden files of the planner: cases of title, SQL and expected plan, each part closed by `;`.

`python -m tests.unit.plan.golden` rewrites the expected plans (`make golden`); review the diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from livemart.plan.explain import summary
from livemart.plan.planner import Inputs, plan_query

FOLDER = Path(__file__).parents[2] / "golden"

INPUTS = Inputs(
    columns={
        "bronze.orders": (
            "order_id", "restaurant_id", "customer_id", "ordered_at", "status", "amount", "items",
        ),
        "bronze.order_events": ("order_id", "status", "_landed_at"),
        "bronze.restaurants": ("restaurant_id", "restaurant_name", "currency_code"),
        "bronze.dishes": ("dish_id", "restaurant_id", "dish_name"),
        "mart.order_panes": ("restaurant_id", "pane_started_at", "order_count"),
        "mart.dish_totals": ("restaurant_id", "dish_id", "quantity_sold"),
        "livemart.clock": ("as_of",),
    },
    unique={
        "bronze.orders": (("order_id",),),
        "bronze.restaurants": (("restaurant_id",),),
        "bronze.dishes": (("dish_id",),),
        "mart.order_panes": (("restaurant_id", "pane_started_at"),),
        "mart.dish_totals": (("restaurant_id", "dish_id"),),
    },
    clocks=frozenset({"livemart.clock"}),
    append_only=frozenset({"bronze.order_events"}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a golden file."""

    file: str
    title: str
    sql: str
    expected: str


def cases() -> Iterator[Case]:
    """Yield every case of every golden file."""
    for path in sorted(FOLDER.glob("*.sql")):
        parts = [part.strip() for part in path.read_text().split(";\n")]
        for head, expected in zip(parts[::2], parts[1::2], strict=False):
            title, sql = head.split("\n", 1)
            yield Case(path.stem, title.removeprefix("# title: "), sql, expected)


def actual(case: Case) -> str:
    """Return the plan of a case in one line."""
    return summary(plan_query(case.sql, INPUTS))


def rewrite() -> None:
    """Write the plans as they are now into the golden files."""
    files: dict[str, list[str]] = {}
    for case in cases():
        text = f"# title: {case.title}\n{case.sql};\n{actual(case)};\n"
        files.setdefault(case.file, []).append(text)
    for name, texts in files.items():
        (FOLDER / f"{name}.sql").write_text("\n".join(texts))


if __name__ == "__main__":
    rewrite()
