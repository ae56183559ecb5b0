"""Prints what a change asks of a query, for the examples in the docstrings of the planner's rules.

`tests/unit/test_docstring_examples.py` runs them, with `show` among the names of the module.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from livemart.plan.plan import Full, Inputs, Plan, Staged
from livemart.plan.planner import plan_query
from livemart.plan.relations.key_query import RowsOf
from livemart.plan.relations.relation import Restriction
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Lookup, Signed
from livemart.plan.strategies.slices import Slice

TABLES = Inputs(
    columns={
        "raw.orders": ("order_id", "shop_id", "customer_id", "ordered_at", "amount", "dishes"),
        "raw.returns": ("order_id", "shop_id", "returned_at", "amount"),
        "raw.shops": ("shop_id", "city"),
        "raw.menu": ("dish", "course"),
        "livemart.clock": ("as_of",),
    },
    unique={
        "raw.orders": (("order_id",),),
        "raw.returns": (("order_id",),),
        "raw.shops": (("shop_id",),),
        "raw.menu": (("dish",),),
    },
    clocks=frozenset({"livemart.clock"}),
)

_WIDTH = 88


def show(sql: str, change: str = "") -> None:
    """Print how a SELECT is refreshed, and what a change of one of its tables asks for.

    | line | says |
    |---|---|
    | `stage 1` | the strategy of a part whose rows are stored |
    | strategy | the columns by which a change is confined, or what each column of a total is |
    | `ties`, `decided by` | an order that may tie; the columns that keep dependent rows together |
    | `taken`, `made among ties` | a column whose value comes from one of these rows, or from all |
    | `running` | totals that are carried on from the row before a change |
    | `counts` | rows whose change is added up: new ones positive, as they were negative |
    | `passed` | rows that a window against the clock gains or loses when the clock moves |
    | `within` | the interval of changed rows that have an effect |
    | `affected` | SQL for the keys w0, w1, ..., then the time, of what may be other rows now |
    | `read` | the rows of each table that are enough to compute these keys again |

    The SQL reads `touched_orders` (the rows that changed, old and new), `present_orders` (all as
    they are) or `known_orders` (both).

    Args:
        sql: over `raw.orders`, `raw.returns`, `raw.shops`, `raw.menu` and `livemart.clock`.
        change: the table that changed, without its schema; none: the strategy alone.
    """
    # Two mentions of a table may ask for the same.
    for line in dict.fromkeys(_lines(plan_query(sql, TABLES), change)):
        print(textwrap.fill(line, _WIDTH, subsequent_indent="    ", break_on_hyphens=False))


def _lines(plan: Plan, change: str) -> Iterator[str]:
    for number, stage in enumerate(plan.stages, start=1):
        yield f"stage {number}: {_strategy(replace(stage.plan, steps=None))}"
    yield _strategy(plan)
    if plan.flat is None or isinstance(plan.strategy, Full | Staged):
        return
    tables = [occurrence.relation.partition(".")[2] for occurrence in plan.flat.occurrences]
    for tie in plan.ties:
        yield f"ties: {tie.message}"
        yield f"decided by: {', '.join(plan.decided_by)}"
    for name, kind in plan.computed_among_ties.items():
        yield f"{kind} among ties: {name}"
    if isinstance(running := plan.strategy, Running):
        for total in running.totals:
            yield f"running: {total.name}, of {total.argument or 'rows'}"
    if isinstance(signed := plan.strategy, Signed):
        for lookup in signed.lookups:
            if tables[lookup.occurrence] == change:
                yield f"counts: {_counted(lookup, tables)}"
        if change in {tables[anchor] for anchor in signed.anchors}:
            yield f"counts: {change} that changed"
    for piece in plan.slices:
        if tables[piece.clock_occurrence] == change:
            yield f"passed: {tables[piece.occurrence]} {_passed(piece)}"
    if isinstance(signed, Signed):
        # Its region is for a batch whose change cannot be added.
        return
    if (region := plan.region) is not None and change:
        yield from _asked(region, tables, change)


def _strategy(plan: Plan) -> str:
    strategy = plan.strategy
    if isinstance(strategy, Full):
        reason = strategy.reasons[0]
        return f"full: {reason.code}: {reason.message}"
    if isinstance(strategy, Signed):
        roles = [f"{output.name} {output.role}" for output in strategy.outputs or ()]
        return f"signed: {', '.join(roles) or 'rows'}"
    if isinstance(strategy, Staged):
        return "staged: all rows of its stages"
    region = plan.region
    assert region is not None
    columns = [*region.keys]
    if region.time is not None:
        # A change at t touches [t - after, t + before].
        before, after = _length(region.after), _length(region.before)
        columns.append(f"{region.time} from {before} before a change to {after} after it")
    return f"region: {', '.join(columns)}"


def _asked(region: Region, tables: list[str], change: str) -> Iterator[str]:
    for occurrence, windows in sorted(region.windows.items()):
        if tables[occurrence] == change:
            ways = (" and ".join(map(_end, window)) for window in windows)
            yield f"within: {' or '.join(ways)}"
    for affected in region.affected:
        if affected.occurrence is not None and tables[affected.occurrence] == change:
            yield f"affected: {affected.sql.render(lambda rows: _named(rows, tables))}"
    for occurrence, restrictions in sorted(region.restrictions.items()):
        ways = (_rows(restriction, region) for restriction in restrictions)
        where = " or ".join(dict.fromkeys(ways))
        yield f"read: {tables[occurrence]}, {f'where {where}' if where else 'all rows'}"


def _rows(restriction: Restriction, region: Region) -> str:
    words = [
        f"{column} = w{index}" if not margin else f"{column} within {_length(margin)} of w{index}"
        for index, column, margin in restriction.keys
    ]
    if restriction.time is not None:
        before = _length(region.after + restriction.before)
        after = _length(region.before + restriction.after)
        place = f"w{len(region.keys)}"
        words.append(f"{restriction.time} from {place} - {before} to {place} + {after}")
    return " and ".join(words)


def _counted(lookup: Lookup, tables: list[str]) -> str:
    pairs = [
        f"{tables[occurrence]} with {name} = {tables[lookup.occurrence]}.{column}"
        for column, sites in lookup.keys
        for occurrence, name in sites
    ]
    if (link := lookup.link) is not None:
        mine, other = tables[lookup.occurrence], tables[link.occurrence]
        pairs = [f"{other} with {link.other} = {mine}.{link.column}"]
    return " and ".join(pairs) or "all"


def _passed(piece: Slice) -> str:
    margin = f" within {_length(piece.margin)}" if piece.margin else ""
    return f"with {piece.column}{margin} between the old and the new {piece.threshold}"


def _end(piece: Slice) -> str:
    margin = f", {_length(piece.margin)} off at most," if piece.margin else ""
    return f"{piece.column}{margin} {'from' if piece.is_lower else 'to'} {piece.threshold}"


def _named(rows: RowsOf, tables: list[str]) -> str:
    return f"{rows.kind}_{tables[rows.occurrence]}"


def _length(micros: int) -> str:
    return str(timedelta(microseconds=micros))
