"""Finds signed change: T' = T + Q(new images) - Q(old images), for linear SQL and additive totals.

Every output row of a linear query comes from exactly one row of an *anchor*: a scan that no join
looks up. The query is evaluated over the touched anchor rows, once as they were and once as they
are. The difference is the exact change: rows that were touched in vain cancel out.

A scan on the other side of a join is a *lookup*: it is read whole, and a change to it touches the
anchor rows that share its join key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from sqlglot import exp, parse_one

from livemart.plan.reading.scopes import Query
from livemart.plan.reasons import Inapplicable, refusal
from livemart.plan.relations.clock import OF_ANY_TYPE, clock_values, is_clock_value
from livemart.plan.relations.gate import Aggregate, Gate, GrandTotal
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join
from livemart.plan.relations.key_query import KeyQuery
from livemart.plan.relations.project import Filter
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Renaming,
    RowByRow,
    Scan,
    bare,
    column,
    columns_of,
    is_constant,
    replaced,
)
from livemart.plan.relations.spelled_rows import InlineRows
from livemart.plan.relations.union import Union
from livemart.plan.sql.determinism import function_name, names_zone
from livemart.plan.sql.written import sql_of
from livemart.plan.strategies.slices import PlanFacts

_EXACT_TYPES = (exp.DataType.Type.DECIMAL, exp.DataType.Type.BIGINT, exp.DataType.Type.INT)
# A count's type holds what INT does: no group has more rows.
_DIGITS_OF_COUNT = 10
_ARGUMENT = "w0"
# All that keeps such totals from adding up.
NO_COUNT_OF_ROWS = "no count of all rows is selected"

_GATES = {
    "Aggregate": "GROUP BY",
    "GroupsOfSets": "grouping sets",
    "GrandTotal": "a total",
    "Distinct": "DISTINCT",
    "Matched": "INTERSECT or EXCEPT",
    "WindowGate": "a window function",
}

Role = Literal["key", "count_rows", "count", "sum"]


@dataclass(frozen=True, slots=True)
class Summed:
    """The parts of a total from which Spark computes its types.

    `arguments` select the summed expression (as w0), one for each branch of a union that is summed.
    `steps` are SUM(w0) and the calls around it, inside out: SQL, and whether it is a TRY_CAST.
    """

    arguments: tuple[KeyQuery, ...]
    steps: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One output column of an additive aggregate.

    `summed`: of a sum, one for each branch of the query; `is_never_null`: a sum that is coalesced
    with 0.
    """

    name: str
    role: Role
    summed: tuple[Summed, ...] = ()
    is_never_null: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """The equality that joins a lookup's `column` to another lookup's column, `other`."""

    column: str
    occurrence: int
    other: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """A scan on the joined side; `keys` pairs its column with the anchors' (occurrence, column).

    `link`: of one without keys that is joined to another lookup, as cities to the shops of orders.
    Neither: a change to it cannot be confined to anchor rows. `is_linear`: each output row comes
    from exactly one of its rows, as from one of the anchor's. Its changed rows alone then say which
    rows they change.
    """

    occurrence: int
    keys: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    is_linear: bool = False
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Signed:
    """How a query moves by signed change; `outputs` is None for linear rows without groups.

    `origins`: by output column of linear SQL, the anchors' stored columns (occurrence, name) that
    each of its values is one of.
    """

    name: ClassVar[str] = "signed"
    anchors: tuple[int, ...]
    lookups: tuple[Lookup, ...]
    outputs: tuple[Output, ...] | None
    origins: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Append(Signed):
    """Signed change of rows that are only ever added."""

    name: ClassVar[str] = "append"


def not_additive(message: str, suggestion: str | None = None) -> Inapplicable:
    """Return why a query, or a batch of one, cannot be moved by adding changes.

    >>> print(not_additive("of a maximum nothing can be taken away"))
    NOT_ADDITIVE: of a maximum nothing can be taken away
    """
    return refusal("NOT_ADDITIVE", message, suggestion=suggestion)


def signed_change(query: Query, facts: PlanFacts) -> Signed:
    """Return how the query moves by signed change; append, if its rows are only ever added.

    A new order adds 1 and its amount to its shop's row, a canceled one takes them away. When a shop
    moves, its orders count as changed: away from the old city, into the new one.

    >>> show(
    ...     "select s.city, count(*) as orders, sum(o.amount) as sales from raw.orders as o"
    ...     " join raw.shops as s on o.shop_id = s.shop_id group by s.city",
    ...     change="shops",
    ... )
    signed: city key, orders count_rows, sales sum
    counts: orders with shop_id = shops.shop_id

    Nothing can be taken away from a maximum:

    >>> show("select shop_id, max(amount) as most from raw.orders group by shop_id")
    region: shop_id

    Raises:
        Inapplicable: NOT_ADDITIVE, or the reason of a part that has no rule.
    """
    branches = _branches(query.top, {name: column(name) for name in query.names}, False)
    anchors: list[int] = []
    lookups: list[Lookup] = []
    for branch in branches:
        source = branch.gate.source if branch.gate is not None else branch.relation
        _collect(source, anchors, lookups)
    if anchors and any(_is_constant(branch.relation) for branch in branches):
        raise not_additive("rows of a table are beside constant ones")
    outputs = _outputs(branches, query)
    if set(anchors) & {lookup.occurrence for lookup in lookups}:
        # One scan with two roles.
        raise not_additive("a common table expression is read on both sides of a join")
    anchors = list(dict.fromkeys(anchors))
    # Rows of a lookup that is there twice are found by more than one key.
    sites = Counter(it.occurrence for it in lookups)
    lookups = [
        replace(it, link=None) if it.link and sites[it.link.occurrence] > 1 else it
        for it in lookups
    ]
    origins = _origins(query, anchors) if outputs is None else {}
    if outputs is None and facts.is_append_only and not lookups:
        return Append(tuple(anchors), (), None, origins)
    if facts.names_zones and any(map(_stores_zone, branches)):
        raise not_additive("a text with the name of a time zone differs from process to process")
    if outputs is not None:
        return Signed(tuple(anchors), tuple(lookups), outputs)
    linear = _linear_lookups(branches, lookups)
    lookups = [replace(lookup, is_linear=lookup.occurrence in linear) for lookup in lookups]
    return Signed(tuple(anchors), tuple(lookups), None, origins)


def _linear_lookups(branches: Sequence[_Branch], lookups: Sequence[Lookup]) -> frozenset[int]:
    """Return the lookups of which each output row comes from exactly one row."""
    if len(branches) != 1 or branches[0].gate is not None:
        return frozenset()
    # If a relation is looked up at two places, two of its rows may meet in one output row.
    parts, sites = Counter(_parts(branches[0].relation)), Counter(it.occurrence for it in lookups)
    return frozenset(one for one in sites if sites[one] == parts[one] == 1)


def _stores_zone(branch: _Branch) -> bool:
    source = branch.relation if branch.gate is None else branch.gate.source
    return any(_names_zone_below(expr, source) for expr in branch.outputs.values())


def _names_zone_below(expr: Expr, relation: Relation) -> bool:
    """Return True if a value holds the name of a time zone, or it is not clear of what it is."""
    if names_zone(expr):
        return True
    if isinstance(relation, RowByRow):
        return any(_names_zone_below(over, it) for it, (over,) in relation.below(expr))
    sites = [relation.trace(reference) for reference in columns_of(expr)]
    return any(it is None or any(names_zone(over) for _, over in it) for it in sites)


def _parts(relation: Relation) -> Iterator[int]:
    """Yield the scans of which each row of a relation comes from exactly one row."""
    if isinstance(relation, Scan):
        yield relation.occurrence
    elif isinstance(relation, Join):
        yield from _parts(relation.left)
        if relation.kind in ("inner", "cross"):
            yield from _parts(relation.right)
    elif isinstance(relation, Renaming | Generate):
        for source in relation.inputs:
            yield from _parts(source)


def _origins(query: Query, anchors: list[int]) -> dict[str, tuple[tuple[int, str], ...]]:
    """Return, by output column of linear SQL, the anchors' columns that each value is one of.

    A lookup's columns are left out: of a row that a join does not find they are NULL.
    """
    origins: dict[str, tuple[tuple[int, str], ...]] = {}
    if any(isinstance(part, InlineRows) for part in query.top.walk()):
        return origins
    for name in query.names:
        sites = query.top.trace(column(name)) or ()
        plain = [(scan.occurrence, bare(expr)) for scan, expr in sites]
        if plain and all(
            isinstance(expr, exp.Column) and occurrence in anchors for occurrence, expr in plain
        ):
            origins[name.lower()] = tuple((occurrence, expr.name) for occurrence, expr in plain)
    return origins


@dataclass(frozen=True, slots=True)
class _Branch:
    relation: Relation
    gate: Aggregate | None
    outputs: Mapping[str, Expr]


def _branches(relation: Relation, outputs: Mapping[str, Expr], is_filtered: bool) -> list[_Branch]:
    if isinstance(relation, Aggregate):
        if is_filtered:
            raise not_additive("groups are filtered, or computed on")
        return [_Branch(relation, relation, outputs)]
    if isinstance(relation, Union) or (isinstance(relation, Renaming) and _has_gate(relation)):
        is_filtered = is_filtered or isinstance(relation, Filter)
        return [
            leaf
            for source, exprs in relation.below(*outputs.values())
            for leaf in _branches(source, dict(zip(outputs, exprs, strict=True)), is_filtered)
        ]
    return [_Branch(relation, None, outputs)]


def _is_constant(relation: Relation) -> bool:
    """Return True for rows of no scan: they would be counted on the one side that has changes."""
    return not any(isinstance(part, Scan) for part in relation.walk())


def _has_gate(relation: Relation) -> bool:
    return any(isinstance(part, Gate) for part in relation.walk())


def _collect(relation: Relation, anchors: list[int], lookups: list[Lookup]) -> None:
    """Find anchors and lookups of a linear query."""
    if isinstance(relation, Scan):
        anchors.append(relation.occurrence)
    elif isinstance(relation, InlineRows):
        return
    elif isinstance(relation, RowByRow | Generate):
        if any(map(_is_constant, relation.inputs)) and not _is_constant(relation):
            raise not_additive("rows of a table are beside constant ones")
        for source in relation.inputs:
            _collect(source, anchors, lookups)
    elif isinstance(relation, Join):
        own_anchors: list[int] = []
        _collect(relation.left, own_anchors, lookups)
        if not own_anchors:
            raise not_additive("the first side of a join is no table")
        anchors.extend(own_anchors)
        _collect_lookups(relation, frozenset(own_anchors), lookups)
    else:
        raise not_additive(f"{_GATES[type(relation).__name__]} below or beside other steps")


def _collect_lookups(join: Join, anchors: frozenset[int], lookups: list[Lookup]) -> None:
    if _has_gate(join.right):
        raise not_additive("a joined side has groups, DISTINCT or windows")
    keyed: dict[int, tuple[str, tuple[tuple[int, str], ...]]] = {}
    links: dict[int, Link] = {}
    repeated = _read_twice(join.right)
    reached = {it.occurrence for it in lookups if it.keys or it.link}
    has_joins = any(isinstance(part, Join) for part in join.right.walk())
    for key in join.keys:
        if key.null_safe and has_joins:
            # A row that finds nothing inside has NULL for a key, and `<=>` finds that.
            continue
        right = join.right.trace(key.right)
        left = join.left.trace(key.left)
        if not right or not left or len(right) != 1:
            continue
        if not all(isinstance(bare(expr), exp.Column) for _, expr in (*right, *left)):
            continue
        scan, expr = right[0]
        if scan.occurrence in repeated:
            # A row of it has other effects than those that its key tells.
            continue
        name, (first, over_first) = bare(expr).name, left[0]
        if {site.occurrence for site, _ in left} == anchors:
            pairs = tuple((site.occurrence, bare(over).name) for site, over in left)
            keyed.setdefault(scan.occurrence, (name, pairs))
        elif len(left) == 1 and first.occurrence in reached and not key.null_safe:
            # A row that the other join does not find has NULL here, which equals nothing.
            by_key = Link(name, first.occurrence, bare(over_first).name)
            links.setdefault(scan.occurrence, by_key)
    for part in join.right.walk():
        if isinstance(part, Scan):
            paired, link = keyed.get(part.occurrence), links.get(part.occurrence)
            keys = () if paired is None else (paired,)
            lookups.append(Lookup(part.occurrence, keys, link=None if keys else link))


def _read_twice(relation: Relation) -> frozenset[int]:
    """Return the scans that a common table expression brings in more than once."""
    readers = Counter(id(source) for part in relation.walk() for source in part.inputs)
    return frozenset(
        scan.occurrence
        for part in relation.walk()
        if readers[id(part)] > 1
        for scan in part.walk()
        if isinstance(scan, Scan)
    )


def _outputs(branches: list[_Branch], query: Query) -> tuple[Output, ...] | None:
    if all(branch.gate is None for branch in branches):
        return None
    if any(branch.gate is None for branch in branches):
        raise not_additive("a union of groups and of rows")
    roles = [_roles(branch) for branch in branches]
    first, *others = ([replace(output, summed=()) for output in role] for role in roles)
    if any(other != first for other in others):
        raise not_additive("the branches of a union have other totals")
    if len(branches) > 1 and not query.top.unique_keys():
        # Two branches might hold the same group.
        raise not_additive(
            "no constant distinguishes the branches of a union, or their keys are of several types"
        )
    if not any(output.role == "count_rows" for output in first):
        raise not_additive(NO_COUNT_OF_ROWS, "select count(*) beside the totals")
    return tuple(
        replace(output, summed=tuple(summed for role in roles for summed in role[place].summed))
        for place, output in enumerate(first)
    )


def _roles(branch: _Branch) -> list[Output]:
    assert branch.gate is not None
    gate = branch.gate
    outputs = [_output(name, expr, gate) for name, expr in branch.outputs.items()]
    keys = [bare(branch.outputs[output.name]) for output in outputs if output.role == "key"]
    if keys and isinstance(gate, GrandTotal):
        # A group is removed with its last row; this one is not.
        raise not_additive("a constant is selected beside the totals of all rows")
    for key in gate.group_keys:
        # A group whose key is not in the output cannot be outputs again.
        if sql_of(key) not in {sql_of(expr) for expr in keys} and not is_constant(key):
            raise not_additive(f"the key {sql_of(key)} is not selected", "select it")
    return outputs


def _output(name: str, expr: Expr, gate: Aggregate) -> Output:
    if gate.is_of_group(_beside_clock(expr)):
        return Output(name, "key")
    call, wrappers = _stripped(expr)
    is_filtered = any(isinstance(wrapper, exp.Filter) for wrapper in wrappers)
    if isinstance(call.this, exp.Distinct):
        raise not_additive(f"{sql_of(expr)} is of different values")
    if isinstance(call, exp.Count):
        if call.expressions or not all(map(_holds_count, wrappers)):
            raise not_additive(f"{sql_of(expr)} is no plain count")
        counted = call.this
        is_rows = counted is None or isinstance(counted, exp.Star | exp.Literal)
        return Output(name, "count_rows" if is_rows and not is_filtered else "count", (), True)
    if function_name(call) == "count_if" and all(map(_holds_count, wrappers)):
        return Output(name, "count", (), True)
    if isinstance(call, exp.Sum):
        summed = Summed(tuple(_beside_clock_below(call.this, gate.source)), _steps(expr))
        is_never_null = any(isinstance(wrapper, exp.Coalesce) for wrapper in wrappers)
        return Output(name, "sum", (summed,), is_never_null)
    raise not_additive(f"{sql_of(expr)} is no sum and no count")


def _beside_clock_below(expr: Expr, source: Relation) -> Iterator[KeyQuery]:
    """Yield the SELECTs of `expr`, a time in place of the clock's value at whichever step has it.

    The types are those of the query, the values are not.
    """
    expr = _beside_clock(expr)
    if isinstance(source, RowByRow):
        for below, (over,) in source.below(expr):
            yield from _beside_clock_below(over, below)
    else:
        yield from source.rows([expr])


def _beside_clock(expr: Expr) -> Expr:
    """Return `expr` with a time in place of the clock's value, which is one for all rows."""
    values = clock_values(expr)
    if any(value.meta.get(OF_ANY_TYPE) for value in values):
        raise not_additive("a value of a subquery is part of it")
    if not values:
        return expr
    moment = parse_one("cast(null as timestamp)", dialect="spark")
    return replaced(expr, lambda reference: moment if is_clock_value(reference) else None)


def _stripped(expr: Expr) -> tuple[Expr, list[Expr]]:
    """Return the aggregate call below casts, parentheses, coalesce(..., 0), FILTER, and these."""
    wrappers: list[Expr] = []
    while isinstance(expr := bare(expr), exp.Cast | exp.Coalesce | exp.Filter):
        # Without ANSI mode the parser reads CAST as TRY_CAST, a subclass of Cast.
        if isinstance(expr, exp.Cast):
            if expr.to.this not in _EXACT_TYPES:
                raise not_additive(f"{sql_of(expr)} is no integer and no decimal")
        elif isinstance(expr, exp.Coalesce):
            default = bare(expr.expressions[0])
            is_zero = default.is_number and float(default.name) == 0
            if len(expr.expressions) != 1 or not is_zero:
                raise not_additive(f"{sql_of(expr)} is another default than 0")
        wrappers.append(expr)
        expr = expr.this
    return expr, wrappers


def _steps(expr: Expr) -> tuple[tuple[str, bool], ...]:
    """Return SUM(w0) and the calls around it, inside out; a copy of the tree is changed."""
    call, wrappers = _stripped(expr.copy())
    call.set("this", exp.column(_ARGUMENT))
    for wrapper in wrappers:
        if isinstance(wrapper, exp.Filter):
            # It reads columns of the rows, and changes no type.
            wrapper.replace(call)
    steps = [call, *(it for it in reversed(wrappers) if not isinstance(it, exp.Filter))]
    return tuple(
        (sql_of(step), isinstance(step, exp.Cast) and bool(step.args.get("safe"))) for step in steps
    )


def _holds_count(wrapper: Expr) -> bool:
    """Return False for a cast that would make a count of rows NULL, or 0 in a COALESCE."""
    if not isinstance(wrapper, exp.Cast) or wrapper.to.this != exp.DataType.Type.DECIMAL:
        return True
    parts = [int(part.name) for part in wrapper.to.expressions]
    digits, scale = (*parts, *(_DIGITS_OF_COUNT, 0)[len(parts) :])
    return digits - scale >= _DIGITS_OF_COUNT
