"""Lets rows influence each other, but only within a key: GROUP BY, DISTINCT and OVER.

Built for each SELECT that has one. A gate keeps its input's columns, so that the select list above
it can be taken as it is written. Only an expression over the gate's own keys may be a region key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from livemart.plan.reasons import Reason, refusal
from livemart.plan.relations.aggregate_calls import TAKE_A_VALUE, called
from livemart.plan.relations.join import Join
from livemart.plan.relations.key_query import KeyQuery
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Restrictions,
    Scan,
    Want,
    bare,
    composed_of,
    is_constant,
)
from livemart.plan.sql.determinism import function_name
from livemart.plan.sql.parse import parse
from livemart.plan.sql.written import sql_of

# They say of which grouping set a group is.
_NUMBERS_OF_SETS = frozenset({"grouping", "grouping_id"})
_NUMBER_OF_SET = parse("select grouping_id()").expressions[0]


class Gate(Relation):
    """A step within whose `keys` rows influence each other.

    `ties`: why more than one answer is right, if the order of its rows decides and may tie. All
    rows of a group are then one decision: its stored rows are replaced as a whole or not at all.

    An expression over the keys passes, for all rows of a group agree in it, and may confine a
    change. A value that is computed from several rows may not.

    >>> show(
    ...     "select upper(shop_id) as shop, max(customer_id) as customer"
    ...     " from raw.orders group by shop_id",
    ...     change="orders",
    ... )
    region: shop
    affected: select distinct upper(shop_id) as w0 from touched_orders
    read: orders, all rows
    """

    def __init__(self, source: Relation, keys: Sequence[Expr], ties: Sequence[Reason] = ()) -> None:
        self.inputs = (source,)
        self.keys = tuple(bare(key) for key in keys)
        self.ties = tuple(ties)

    def passes(self, expr: Expr) -> bool:
        """Return True if rows with different values of `expr` are never in one group."""
        if not composed_of(expr, self._firm_keys):
            return False
        text = sql_of(bare(expr))
        if text in {sql_of(key) for key in self._firm_keys} or not self._varied_keys:
            return True
        return self._varied_keys.isdisjoint(sql_of(bare(part)) for part in expr.walk())

    @cached_property
    def _varied_keys(self) -> frozenset[str]:
        """The keys of which equal values may look different: a text of them tells them apart."""
        # A change of a stored number counts for both of its zeros; the rows that it finds do not.
        is_found = any(isinstance(part, Join) for part in self.source.walk())
        return frozenset(
            sql_of(key)
            for key in self._firm_keys
            for scan, over in self.source.trace(key) or ()
            if _is_varied(scan, bare(over), is_found=is_found)
        )

    @cached_property
    def _firm_keys(self) -> list[Expr]:
        return [key for key in self.keys if not self.source.is_elastic(key)]

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        return self.passes(expr) and self.source.is_local(expr, anchored=anchored)

    def is_local_time(self, expr: Expr) -> bool:
        return self.passes(expr) and self.source.is_local_time(expr)

    def meets_frame(self, expr: Expr) -> bool:
        return self.source.meets_frame(expr)

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        self._require(want[:-1] if has_time and self._passes_time(want[-1]) else want)
        return self.source.affected(want, has_time=has_time)

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        """A value that a call takes from one of a group's rows may be that of any of them."""
        others = [expr for expr in want if not self.passes(expr)]
        values = _values_of(others[0]) if len(others) == 1 else []
        if not values:
            self._require(want)
            return self.source.rows(want, past=past)
        return [
            query
            for value in values
            for query in self.source.rows(
                [value if expr is others[0] else expr for expr in want], past=past
            )
        ]

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        # As a condition a hopping window would read a row once per window.
        keys = tuple(
            key if key is not None and self.passes(key) and hopping_window(key) is None else None
            for key in want.keys
        )
        if self.ties:
            # A constant is the same in every group: it keeps none together.
            restrictions.decisions.setdefault(id(self), []).append(
                tuple(None if key is None or is_constant(key) else key for key in keys)
            )
        time = want.time if want.time is not None and self._passes_time(want.time) else None
        self.source.restrict(Want(keys, time, *self._widened(want)), restrictions)

    def _passes_time(self, expr: Expr) -> bool:
        return self.passes(expr) and hopping_window(expr) is None

    def _widened(self, want: Want) -> tuple[int, int]:
        return want.before, want.after

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        return self.source.trace(expr) if self.passes(expr) else None

    def _require(self, want: Sequence[Expr]) -> None:
        for expr in want:
            if not self.passes(expr):
                raise refusal(
                    "KEY_NOT_IN_OUTPUT",
                    f"{sql_of(expr)} is not made of the keys "
                    f"({', '.join(map(sql_of, self.keys)) or 'none'})",
                )


class Aggregate(Gate):
    """GROUP BY `keys`.

    >>> show("select shop_id, max(amount) as most from raw.orders group by shop_id", "orders")
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0

    A key that is not selected is a column of a stage.

    >>> show("select max(amount) as most from raw.orders group by shop_id", "orders")
    stage 1: region: __livemart_key_1
    signed: rows

    `group_keys`: all that tells one group from another. `reason`: None, or, in a subclass, why none
    of `keys` confines a change.
    """

    def __init__(self, source: Relation, keys: Sequence[Expr], ties: Sequence[Reason] = ()) -> None:
        super().__init__(source, keys, ties)
        self.group_keys = self.keys
        self.reason: Reason | None = None

    def is_of_group(self, expr: Expr) -> bool:
        """Return True if all rows of a group agree in `expr`, and it may tell groups apart."""
        return self.passes(expr)

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return [frozenset(sql_of(key) for key in self.keys if not is_constant(key))]


class GroupsOfSets(Aggregate):
    """ROLLUP, CUBE and GROUPING SETS: each row is in one group of each set.

    A key that is in all of the sets confines a change. Any other one is NULL in some groups, as it
    may be in rows: `grouping_id()` tells the sets apart. Without a row there is no group, not even
    of the set without keys (Spark 4.2).

    >>> show(
    ...     "select shop_id, customer_id, max(amount) as most from raw.orders"
    ...     " group by shop_id, rollup (customer_id)",
    ...     change="orders",
    ... )
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0

    Else it can only be added to, each row to a group of each set.

    >>> show(
    ...     "select shop_id, customer_id, grouping_id() as level, count(*) as orders"
    ...     " from raw.orders group by cube (shop_id, customer_id)",
    ...     change="orders",
    ... )
    signed: shop_id key, customer_id key, level key, orders count_rows
    counts: orders that changed
    """

    def __init__(
        self,
        source: Relation,
        sets: Sequence[Sequence[Expr]],
        reason: Reason,
        ties: Sequence[Reason] = (),
    ) -> None:
        every = {sql_of(key): key for keys in sets for key in keys}
        common = set.intersection(*({sql_of(key) for key in keys} for keys in sets))
        super().__init__(source, [key for text, key in every.items() if text in common], ties)
        self.group_keys = (*every.values(), _NUMBER_OF_SET)
        self.reason = None if common else reason

    def is_of_group(self, expr: Expr) -> bool:
        numbers = [node for node in expr.walk() if function_name(node) in _NUMBERS_OF_SETS]
        return Aggregate(self.source, (*self.group_keys, *numbers)).passes(expr)

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return [frozenset(map(sql_of, self.group_keys))]


class GrandTotal(Aggregate):
    """The one row of an aggregate without GROUP BY, at the top of a query.

    It exists without any row below it, so no step may be above. It can only be added to.

    >>> show("select count(*) as orders, sum(amount) as sales from raw.orders", "orders")
    signed: orders count_rows, sales sum
    counts: orders that changed
    >>> show("select max(amount) as most from raw.orders", "orders")
    full: GLOBAL_AGG: an aggregate without GROUP BY depends on every row
    """

    def __init__(self, source: Relation, reason: Reason) -> None:
        super().__init__(source, ())
        self.reason = reason

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return []


class Distinct(Gate):
    """DISTINCT over all columns, which are the keys.

    >>> show("select distinct shop_id, customer_id from raw.orders", "orders")
    region: shop_id, customer_id
    affected: select distinct shop_id as w0, customer_id as w1 from touched_orders
    read: orders, where shop_id = w0 and customer_id = w1
    """

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return [
            frozenset(sql_of(key) for key in self.keys),
            *self.source.unique_keys(null_safe=null_safe),
        ]


class Matched(Gate):
    """INTERSECT and EXCEPT: how often a row comes depends on the equal rows of both sides alone.

    Its source has the rows of both; its keys are all columns.

    >>> show(
    ...     "select shop_id, customer_id from raw.orders"
    ...     " intersect select shop_id, order_id from raw.returns",
    ...     change="returns",
    ... )
    region: shop_id, customer_id
    affected: select distinct shop_id as w0, order_id as w1 from touched_returns
    read: orders, where shop_id = w0 and customer_id = w1
    read: returns, where shop_id = w0 and order_id = w1
    """

    def __init__(self, source: Relation, keys: Sequence[Expr], *, is_distinct: bool) -> None:
        super().__init__(source, keys)
        self._is_distinct = is_distinct

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return [frozenset(map(sql_of, self.keys))] if self._is_distinct else []


@dataclass(frozen=True, slots=True)
class Frame:
    """A RANGE frame in value space: [x - before, x + after] microseconds of the order value.

    An order is in the frames of the hour after it; these need the orders of the hour before them.

    >>> show(
    ...     "select shop_id, ordered_at, avg(amount) over (partition by shop_id order by ordered_at"
    ...     " range between interval 1 hour preceding and current row) as average from raw.orders",
    ...     change="orders",
    ... )
    region: shop_id, ordered_at from 0:00:00 before a change to 1:00:00 after it
    affected: select distinct shop_id as w0, ordered_at as w1 from touched_orders
    read: orders, where shop_id = w0 and ordered_at from w1 - 1:00:00 to w1 + 1:00:00
    """

    order: Expr
    before: int
    after: int


class WindowGate(Gate):
    """OVER (PARTITION BY `keys` ...); `frame` only for a bounded RANGE frame over a time.

    A change at t touches [t - after, t + before] of its partition and nothing else; the rows of
    [a, b] are computed from [a - before, b + after].

    Without such a frame, as for a place, any row of the partition may move.

    >>> show(
    ...     "select shop_id, order_id,"
    ...     " row_number() over (partition by shop_id order by ordered_at, order_id) as place"
    ...     " from raw.orders",
    ...     change="orders",
    ... )
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """

    def __init__(
        self,
        source: Relation,
        keys: Sequence[Expr],
        frame: Frame | None,
        ranked: Sequence[Expr] = (),
        ties: Sequence[Reason] = (),
        windows: Sequence[Expr] = (),
    ) -> None:
        super().__init__(source, keys, ties)
        self.windows = tuple(windows)
        self._windows = frozenset(map(sql_of, windows))
        self.frame = frame
        self.ranked = tuple(ranked)

    def is_local_time(self, expr: Expr) -> bool:
        return self._passes_time(expr) and self.source.is_local_time(expr)

    def meets_frame(self, expr: Expr) -> bool:
        return self._passes_time(expr) or self.source.meets_frame(expr)

    def _passes_time(self, expr: Expr) -> bool:
        return self.frame is not None and sql_of(bare(expr)) == sql_of(self.frame.order)

    def _widened(self, want: Want) -> tuple[int, int]:
        if self.frame is None:
            return want.before, want.after
        return want.before + self.frame.before, want.after + self.frame.after

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        windows = {sql_of(window) for expr in want for window in _outermost_windows(expr)}
        if windows & self._windows:
            self._require([] if windows <= self._windows else want)
            return super().rows(want, past=past)
        # Those of other partitions are of a gate below.
        return self.source.rows(want, past=past)

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        # A window function keeps every row, so any other column of the row may be traced.
        if any(isinstance(node, exp.Window) for node in expr.walk()):
            return None
        return self.source.trace(expr)

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        by_rank = [
            frozenset({*(sql_of(key) for key in self.keys), sql_of(rank)}) for rank in self.ranked
        ]
        return [*by_rank, *self.source.unique_keys(null_safe=null_safe)]


def _is_varied(scan: Scan, key: Expr, *, is_found: bool) -> bool:
    """Return True if equal values of a key may differ: in a zero's sign, in the order of a map.

    Args:
        is_found: changes of other tables find its rows.
    """
    # A whole number or a text that a double gives has one form.
    nodes = [*key.walk(prune=_is_firm)]
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    kinds = [scan.kinds.get(reference.name.lower(), "") for reference in columns]
    if isinstance(key, exp.Column) and not is_found:
        return any("map<" in kind or ("<" in kind and _holds_float(kind)) for kind in kinds)
    is_float = any(map(_holds_float, kinds)) or any(
        isinstance(node, exp.Div) or (isinstance(node, exp.Cast) and _holds_float(node.to.sql()))
        for node in nodes
        if not _is_firm(node)
    )
    return bool(scan.kinds) and (is_float or any("map<" in kind for kind in kinds))


def _is_firm(node: Expr) -> bool:
    if isinstance(node, exp.Cast):
        return not (_holds_float(node.to.sql()) or "map" in node.to.sql().lower())
    return isinstance(node, exp.Floor | exp.Ceil)


def _holds_float(kind: str) -> bool:
    return "double" in kind.lower() or "float" in kind.lower()


def _outermost_windows(expr: Expr) -> Iterator[exp.Window]:
    for node in expr.walk(prune=lambda node: isinstance(node, exp.Window)):
        if isinstance(node, exp.Window):
            yield node


def _values_of(expr: Expr) -> list[Expr]:
    """Return the values that a call of one row's value may give, besides NULL; else nothing.

    With another value of another call it may meet in no row of the input.
    """
    call, fields = bare(expr), list[Expr]()
    while isinstance(call, exp.Dot):
        # `max_by(struct(a, b), at).b`
        fields.insert(0, call.expression)
        call = bare(call.this)
    call = called(call)
    value = call.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0] if len(value.expressions) == 1 else None
    if function_name(call) not in TAKE_A_VALUE or not isinstance(value, exp.Expr):
        return []
    # NULL of the same type.
    nothing = exp.If(this=exp.false(), true=value.copy(), false=exp.null())
    default = call.args.get("default")
    values = [value, nothing, *([default] if isinstance(default, exp.Expr) else [])]
    for field in fields:
        values = [exp.Dot(this=exp.Paren(this=it.copy()), expression=field.copy()) for it in values]
    return values


def hopping_window(expr: Expr) -> Expr | None:
    """Return the call of `window(t, size, slide)`, if there is one: it repeats rows."""
    calls = (node for node in expr.walk() if function_name(node) == "window")
    return next((call for call in calls if len(list(call.iter_expressions())) > 2), None)
