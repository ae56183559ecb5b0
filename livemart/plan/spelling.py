"""Gives a plan the names that the model's table has: the planner knows them in lower case only.

Used by refresh once per model and batch, before a strategy begins. What a strategy hands to Arrow,
to a commit or to SQL is then the stored name. The inputs' columns are spelled by the planner, which
knows their tables; whoever reads one asks `PinnedTable.field`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from livemart.plan.planner import Plan, Strategy
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Signed

NameOf = Callable[[str], str]


def spelled(plan: Plan, name_of: NameOf) -> Plan:
    """Return the plan with its output columns named as `name_of` says that the table does."""
    return replace(
        plan,
        unique_key=tuple(map(name_of, plan.unique_key)),
        strategy=_strategy(plan.strategy, name_of),
    )


def _strategy(strategy: Strategy, name_of: NameOf) -> Strategy:
    match strategy:
        case Region():
            return _region(strategy, name_of)
        case Signed():
            outputs = strategy.outputs
            if outputs is not None:
                outputs = tuple(replace(output, name=name_of(output.name)) for output in outputs)
            region = None if strategy.region is None else _region(strategy.region, name_of)
            return replace(strategy, outputs=outputs, region=region)
        case Running():
            return replace(
                strategy,
                region=_region(strategy.region, name_of),
                keys=tuple((name_of(name), column) for name, column in strategy.keys),
                time=(name_of(strategy.time[0]), strategy.time[1]),
                plain=tuple(replace(plain, name=name_of(plain.name)) for plain in strategy.plain),
                totals=tuple(replace(total, name=name_of(total.name)) for total in strategy.totals),
            )
        case _:
            return strategy


def _region(region: Region, name_of: NameOf) -> Region:
    return replace(
        region,
        keys=tuple(map(name_of, region.keys)),
        time=None if region.time is None else name_of(region.time),
    )
