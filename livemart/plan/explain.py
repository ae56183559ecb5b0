"""Explain: a plan in one line, for golden files and logs."""

from __future__ import annotations

from livemart.plan.planner import Plan
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.slices import Slice


def summary(plan: Plan) -> str:
    """Return a plan in one line, stable enough for golden files.

    Examples: `signed groups`, `region keys=(restaurant_id)`, `full reason=GLOBAL_AGG`.
    """
    words: list[str] = [plan.strategy]
    if plan.strategy in ("signed", "append") and plan.signed is not None:
        words.append("rows" if plan.signed.outputs is None else "groups")
        if plan.signed.lookups:
            resolved = sum(1 for lookup in plan.signed.lookups if lookup.keys)
            words.append(f"lookups={resolved}/{len(plan.signed.lookups)}")
    if plan.region is not None:
        words.append(_region(plan.region))
    if plan.unique_key:
        words.append(f"unique=({', '.join(plan.unique_key)})")
    if plan.slices:
        columns = sorted({item.column for item in plan.slices})
        words.append(f"slices=({', '.join(columns)})")
    for reason in plan.reasons:
        words.append(f"reason={reason.code}")
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
