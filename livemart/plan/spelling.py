"""Gives a plan the names that the model's table has: the planner knows them in lower case only.

Used by refresh once per model and batch, before a strategy begins. A strategy then hands stored
names to Arrow, to commits and to SQL. The planner spells the inputs' columns, for it knows their
tables; a reader of an input asks `PinnedTable.fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from livemart.plan.plan import Plan, Strategy
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Signed

NameOf = Callable[[str], str]
_Way = TypeVar("_Way", bound=Strategy)


def spelled(plan: Plan, name_of: NameOf) -> Plan:
    """Return the plan with its output columns named as `name_of` says that the table does."""
    return replace(
        plan,
        unique_key=tuple(map(name_of, plan.unique_key)),
        strategy=_way(plan.strategy, name_of),
        others=tuple(_way(way, name_of) for way in plan.others),
    )


def _way(strategy: _Way, name_of: NameOf) -> _Way:
    match strategy:
        case Region():
            return replace(
                strategy,
                keys=tuple(map(name_of, strategy.keys)),
                time=None if strategy.time is None else name_of(strategy.time),
            )
        case Signed():
            outputs = strategy.outputs
            if outputs is not None:
                outputs = tuple(replace(output, name=name_of(output.name)) for output in outputs)
            return replace(strategy, outputs=outputs)
        case Running():
            return replace(
                strategy,
                keys=tuple((name_of(name), column) for name, column in strategy.keys),
                time=(name_of(strategy.time[0]), strategy.time[1]),
                plain=tuple(replace(plain, name=name_of(plain.name)) for plain in strategy.plain),
                totals=tuple(replace(total, name=name_of(total.name)) for total in strategy.totals),
            )
        case _:
            return strategy
