"""Golden files of the planner: cases of title, SQL and expected plan, each part closed by `;`.

`python -m tests.unit.plan.golden` rewrites the expected plans (`make golden`); review the diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.signed import Signed
from livemart.plan.strategies.slices import Slice

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


def summary(plan: Plan) -> str:
    """Return a plan in one line.

    Examples: `signed groups`, `region keys=(restaurant_id)`, `full reason=GLOBAL_AGG`.
    """
    words: list[str] = [plan.strategy.name]
    if isinstance(signed := plan.strategy, Signed):
        words.append("rows" if signed.outputs is None else "groups")
        if signed.lookups:
            resolved = sum(1 for lookup in signed.lookups if lookup.keys)
            words.append(f"lookups={resolved}/{len(signed.lookups)}")
    if plan.region is not None:
        words.append(_region(plan.region))
    if plan.unique_key:
        words.append(f"unique=({', '.join(plan.unique_key)})")
    if plan.slices:
        columns = sorted({item.column for item in plan.slices})
        words.append(f"slices=({', '.join(columns)})")
    for reason in plan.reasons:
        words.append(f"reason={reason.code}")
    names = {stage.relation: f"stage_{n}" for n, stage in enumerate(plan.stages, start=1)}
    for stage in plan.stages:
        words.append(f"{names[stage.relation]}=({summary(replace(stage.plan, steps=None))})")
    if plan.stages:
        assert plan.flat is not None
        last = plan.flat.render(lambda it: names.get(it.relation, it.relation))
        words.append(f"last=({' '.join(last.split())})")
    return " ".join(words)


def _region(region: Region) -> str:
    text = f"keys=({', '.join(region.keys)})"
    if region.time is not None:
        before = region.before // 1_000_000
        after = region.after // 1_000_000
        text += f" time={region.time} before={before}s after={after}s"
    for occurrence, windows in sorted(region.windows.items()):
        text += f" within[{occurrence}]=({' or '.join(map(_window, windows))})"
    return text


def _window(window: tuple[Slice, ...]) -> str:
    return ", ".join(f"{'from' if end.is_lower else 'to'} {end.threshold}" for end in window)


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
