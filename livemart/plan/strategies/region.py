"""Finds the affected region: the output rows that a change may move.

Used by the planner for every query with a key, or a bounded frame over a time, that confines a
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from livemart.plan.reading.scopes import Query
from livemart.plan.reasons import Inapplicable, refusal
from livemart.plan.relations.gate import Aggregate, Gate, WindowGate
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join
from livemart.plan.relations.key_query import KeyQuery
from livemart.plan.relations.monotone import restriction_of
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Renaming,
    Restriction,
    Restrictions,
    RowByRow,
    Want,
    column,
    composed_of,
    is_constant,
)
from livemart.plan.sql.written import sql_of
from livemart.plan.strategies.slices import PlanFacts, Windows, windows_of
from livemart.plan.strategies.ties import keeping_decisions, scattered, ties_of

# Each table that a key query joins costs Spark about 0.1 s, however few rows changed: with more of
# them than this a recomputation is cheaper.
_MOST_KEY_READS = 150
_CARRY_A_COLUMN = "carry a column of what is read to the output"
_CARRY_A_KEY = "carry a common key of every GROUP BY and PARTITION BY to the output"
_IN_TWO_MODELS = "store the rows with the window in a model, and group that: both are incremental"


@dataclass(frozen=True, slots=True)
class Region:
    """How an affected region is found, and which rows are read to recompute it.

    `keys` are output columns; `time` is the output column of the intervals, with `before` and
    `after` microseconds around each change. `affected`: queries of w0, w1, ... (the keys, then the
    time). `windows`: by occurrence, where a row that changed must be to affect anything, if not
    anywhere.
    """

    name: ClassVar[str] = "region"
    keys: tuple[str, ...]
    time: str | None
    before: int
    after: int
    affected: tuple[KeyQuery, ...]
    restrictions: Mapping[int, tuple[Restriction, ...]]
    windows: Mapping[int, Windows]

    @property
    def stored(self) -> Restriction:
        """Return the restriction to those of the model's own rows that may be in the region."""
        return Restriction(
            tuple((index, name, 0) for index, name in enumerate(self.keys)), self.time
        )


def confined_by(region: Region, places: Sequence[int]) -> Region:
    """Return a region that only some of its keys confine; the keys are numbered from 0.

    >>> from livemart.plan.relations.key_query import RowsOf, key_query
    >>> columns = [exp.column("shop"), exp.column("day")]
    >>> affected = key_query(columns, RowsOf("touched", 0))
    >>> restrictions = {0: (Restriction(((0, "shop", 0), (1, "day", 0))),)}
    >>> region = Region(("shop", "day"), None, 0, 0, (affected,), restrictions, {})
    >>> by_day = confined_by(region, [1])
    >>> by_day.keys, by_day.restrictions[0][0].keys
    (('day',), ((0, 'day', 0),))
    >>> str(by_day.affected[0])
    'select distinct day as w0 from __touched_0__'
    """
    number = {place: index for index, place in enumerate(places)}
    outputs = [*places, *([len(region.keys)] if region.time is not None else [])]
    return replace(
        region,
        keys=tuple(region.keys[place] for place in places),
        affected=tuple(query.only(outputs) for query in region.affected),
        restrictions={
            occurrence: tuple(
                replace(
                    item,
                    keys=tuple(
                        (number[place], name, margin)
                        for place, name, margin in item.keys
                        if place in number
                    ),
                )
                for item in items
            )
            for occurrence, items in region.restrictions.items()
        },
    )


def region_of(query: Query, facts: PlanFacts) -> Region:
    """Return the region of a query.

    Raises:
        Inapplicable: KEY_NOT_IN_OUTPUT, if no output column confines a change;
            NONDETERMINISTIC_ORDER or NONDETERMINISTIC_AGG, if none that does keeps together the
            rows that depend on rows that may tie. COST_GATE, if finding the affected keys takes
            more than recomputing everything.

    >>> show("select shop_id, max(amount) as most from raw.orders group by shop_id", "orders")
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    >>> show(
    ...     "select distinct rank() over (partition by shop_id order by amount) as place"
    ...     " from raw.orders"
    ... )
    full: KEY_NOT_IN_OUTPUT: no output column confines a change: GROUP BY place; PARTITION
        BY orders.shop_id. place is computed by a window: a change may move rows to any
        group
    """
    top = query.top
    gates = [relation for relation in top.walk() if isinstance(relation, Gate)]
    groups = [gate for gate in gates if isinstance(gate, Aggregate)]
    if reason := next((it.reason for it in groups if it.reason is not None), None):
        raise Inapplicable(reason)
    windows = (gate for gate in gates if isinstance(gate, WindowGate))
    frames = [window.frame for window in windows if window.frame is not None]
    names: list[exp.Expr] = [column(name) for name in query.names]
    keys = [name for name in names if top.is_local(name, anchored=True)]
    if all(constants_of(top, key) is not None for key in keys):
        keys = [name for name in names if top.is_local(name, anchored=False)]
    time = None
    if frames:
        times = (name for name in names if top.is_local_time(name) and top.meets_frame(name))
        time = next(times, None)
    if ties := ties_of(top):
        # Rows in an interval may share a decision with rows outside.
        time = None
        confining, keys = keys, keeping_decisions(top, keys)
        if confining and not keys:
            raise Inapplicable(scattered(ties[0]))
    keys = [key for key in keys if time is None or sql_of(key) != sql_of(time)]
    if not gates:
        texts = set(map(sql_of, keys))
        if unique := [key for key in top.unique_keys() if key <= texts]:
            keys = [key for key in keys if sql_of(key) in min(unique, key=len)]
    if not any(_varies(top, key) for key in keys) and time is None:
        steps = "; ".join(_gate_text(gate) for gate in gates[:3])
        message, suggestion = f"no output column confines a change: {steps}", _CARRY_A_KEY
        if not gates:
            message, suggestion = "no output column confines a change", _CARRY_A_COLUMN
        elif (hint := _grouped_above_window(gates)) is not None:
            message, suggestion = f"{message}. {hint}", _IN_TWO_MODELS
        elif obstacle := next(filter(None, (_in_the_way(top, name) for name in names)), None):
            message, suggestion = f"{obstacle[0]}, and so confines no change: {steps}", obstacle[1]
        raise refusal("KEY_NOT_IN_OUTPUT", message, suggestion=suggestion)
    want = [*keys, *([time] if time is not None else [])]
    restrictions = Restrictions()
    top.restrict(Want(tuple(keys), time), restrictions)
    affected = tuple(top.affected(want, has_time=time is not None))
    reads = sum(len(query.sql.holes) for query in affected)
    if reads > _MOST_KEY_READS:
        raise refusal(
            "COST_GATE",
            f"the affected keys are found by {len(affected)} queries, which read {reads} tables",
            suggestion="store the shared part of several branches as a separate model",
        )
    # No path through the query can widen a change more than by the sums of the frames' margins.
    widening = frames if time is not None else []
    return Region(
        tuple(key.name for key in keys),
        None if time is None else time.name,
        sum(frame.before for frame in widening),
        sum(frame.after for frame in widening),
        affected,
        {
            occurrence: tuple(map(restriction_of, items))
            for occurrence, items in restrictions.scans.items()
        },
        windows_of(top),
    )


def _varies(top: Relation, key: exp.Expr) -> bool:
    """Return False for a column that is one constant."""
    constants = constants_of(top, key)
    return constants is None or len(constants) > 1


def _grouped_above_window(gates: Sequence[Gate]) -> str | None:
    """Return why groups by a column computed above a window move, None if there are none."""
    for gate in gates:
        for key in gate.keys:
            relation, expr = gate.source, key
            while isinstance(relation, Renaming):
                expr = relation.over_source(expr)
                relation = relation.source
            if not isinstance(relation, WindowGate) or relation.passes(expr):
                continue
            if expr.find(exp.Window) is not None:
                return f"{sql_of(key)} is computed by a window: a change may move rows to any group"
            by = ", ".join(map(sql_of, relation.keys)) or "nothing"
            return f"{sql_of(key)} is that of rows which a window picks by {by}"
    return None


def _in_the_way(relation: Relation, expr: exp.Expr) -> tuple[str, str] | None:
    """Return why an output column that is a key of every step confines nothing, and a suggestion.

    None of a column that is no such key, or that confines.
    """
    if relation.is_local(expr, anchored=False):
        return None
    if isinstance(relation, Renaming):
        return _in_the_way(relation.source, relation.over_source(expr))
    if isinstance(relation, Gate):
        if relation.passes(expr):
            return _in_the_way(relation.source, expr)
        if relation.source.is_elastic(expr) and composed_of(expr, relation.keys):
            return f"{sql_of(expr)} moves with rows that come between", "group by a key beside it"
        return None
    if isinstance(relation, Generate):
        return (
            f"{sql_of(expr)} is made by {sql_of(relation.generator)}",
            "store the rows that it makes in a model, and group that: both are incremental",
        )
    if isinstance(relation, Join):
        joined = "store the joined rows in a model, and group that: both are incremental"
        match relation.side(expr):
            case "both":
                return f"{sql_of(expr)} is computed from both sides of a join", joined
            case "right" if relation.kind not in ("inner", "cross"):
                return f"{sql_of(expr)} is of the right side of a {relation.kind} join", joined
            case "right":
                return _in_the_way(relation.right, expr)
            case _:
                return _in_the_way(relation.left, expr)
    return None


def _gate_text(gate: Gate) -> str:
    kind = "PARTITION BY" if isinstance(gate, WindowGate) else "GROUP BY"
    return f"{kind} {', '.join(map(sql_of, gate.keys)) or '()'}"


def constants_of(relation: Relation, expr: Expr) -> frozenset[str] | None:
    """Return the constants that `expr` is one of in every row; None if it depends on columns.

    A key that is one constant confines nothing; one of two tells the branch that a change is in.

    >>> show("select 'all' as kind, max(amount) as most from raw.orders group by 1")
    full: KEY_NOT_IN_OUTPUT: no output column confines a change: GROUP BY 1
    >>> show(
    ...     "select 'sold' as kind, max(amount) as most from raw.orders group by 1"
    ...     " union all select 'returned', max(amount) from raw.returns group by 1",
    ...     change="returns",
    ... )
    region: kind
    affected: select distinct 'returned' as w0 from touched_returns
    read: orders, all rows
    read: returns, all rows
    """
    if is_constant(expr):
        return frozenset({sql_of(expr)})
    if isinstance(relation, Gate | Generate):
        return constants_of(relation.source, expr)
    if isinstance(relation, Join):
        side = relation.side(expr)
        if side == "both":
            return None
        return constants_of(relation.right if side == "right" else relation.left, expr)
    if isinstance(relation, RowByRow):
        by_input = [constants_of(source, over) for source, (over,) in relation.below(expr)]
        of_inputs = [constants for constants in by_input if constants is not None]
        return frozenset().union(*of_inputs) if len(of_inputs) == len(by_input) else None
    return None
