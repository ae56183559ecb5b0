"""Scopes: from qualified SQL to relations, one step at a time, innermost first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from livemart.plan.clock import ClockBound, bounds_of, clock_value, clock_values
from livemart.plan.determinism import function_name, is_order_dependent, line_of
from livemart.plan.frames import frame_of, needs_total_order
from livemart.plan.functions import AGGREGATE_FUNCTIONS, BUILT_IN_FUNCTIONS
from livemart.plan.reasons import Reason, Unplannable
from livemart.plan.relation import (
    Expr,
    Relation,
    Scan,
    bare,
    column,
    columns_of,
    composed_of,
    sql_of,
)
from livemart.plan.rules.alias import Alias
from livemart.plan.rules.gate import Aggregate, Distinct, Frame, Window
from livemart.plan.rules.generate import Generate
from livemart.plan.rules.join import Join, JoinKind, equi_keys
from livemart.plan.rules.project import Filter, Project
from livemart.plan.rules.union import Union
from livemart.plan.rules.values import Values

# What a scalar subquery may do with its column and still be a value moved by a constant.
_MOVED = (
    exp.Column,
    exp.Identifier,
    exp.Add,
    exp.Sub,
    exp.Interval,
    exp.Literal,
    exp.Var,
    exp.Paren,
)
_GENERATORS = {
    "explode": False,
    "explode_outer": True,
    "posexplode": False,
    "posexplode_outer": True,
    "inline": False,
    "inline_outer": True,
    "stack": False,
}


@dataclass(slots=True)
class Parameter:
    """A one-row relation read for a value: the clock, or a scalar subquery on a stored relation."""

    occurrence: int
    relation: str
    compared_with_time: bool = True


@dataclass(slots=True)
class Query:
    """A query as relations: `top` yields the output columns `names` as bare column names."""

    top: Relation
    names: tuple[str, ...]
    parameters: dict[int, Parameter] = field(default_factory=dict)


ScanOf = Callable[[str], Scan | None]


def build_query(tree: exp.Query, scan_of: ScanOf, is_clock: Callable[[str], bool]) -> Query:
    """Return the relations of a qualified query.

    Args:
        tree: output of sqlglot's `qualify` over a flat text.
        scan_of: the scan of a placeholder name, None for any other table name.
        is_clock: True for relations that are the clock.

    Raises:
        Unplannable: with the reason why no rule applies.
    """
    builder = _Builder(scan_of, is_clock)
    top, names = builder.query(tree, {})
    return Query(top, names, builder.parameters)


_Environment = Mapping[str, tuple[Relation, tuple[str, ...]]]


class _Builder:
    def __init__(self, scan_of: ScanOf, is_clock: Callable[[str], bool]) -> None:
        self._scan_of = scan_of
        self._is_clock = is_clock
        self.parameters: dict[int, Parameter] = {}

    # Queries -----------------------------------------------------------------------------------

    def query(self, tree: Expr, outer: _Environment) -> tuple[Relation, tuple[str, ...]]:
        environment = dict(outer)
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise _unsupported("a recursive common table expression", with_)
            for cte in with_.expressions:
                relation, names = self.query(cte.this, environment)
                renamed = tuple(name.name for name in cte.args["alias"].args.get("columns") or ())
                if renamed:
                    relation = Project(
                        relation,
                        {new: column(old) for new, old in zip(renamed, names, strict=True)},
                    )
                environment[cte.alias] = (relation, renamed or names)
        if isinstance(tree, exp.Subquery):
            relation, names = self.query(tree.this, environment)
            self._refuse_limit(tree)
            return relation, names
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, environment)
        if isinstance(tree, exp.Select):
            return self._select(tree, environment)
        raise _unsupported(f"{type(tree).__name__.lower()} as a query", tree)

    def _set_operation(
        self, tree: exp.SetOperation, environment: _Environment
    ) -> tuple[Relation, tuple[str, ...]]:
        self._refuse_limit(tree)
        if not isinstance(tree, exp.Union) or tree.args.get("by_name"):
            raise _unsupported(f"{type(tree).__name__.upper()}", tree)
        branches = [self.query(side, environment) for side in (tree.left, tree.right)]
        flat: list[Relation] = []
        names: list[tuple[str, ...]] = []
        for relation, own in branches:
            if isinstance(relation, Union) and own == relation.names:
                flat.extend(relation.inputs)
                names.extend(relation.branch_names)
            else:
                flat.append(relation)
                names.append(own)
        union: Relation = Union(flat, names)
        if tree.args.get("distinct"):
            union = Distinct(union, [column(name) for name in names[0]])
        return union, names[0]

    def _select(
        self, tree: exp.Select, environment: _Environment
    ) -> tuple[Relation, tuple[str, ...]]:
        self._refuse_limit(tree)
        for clause in ("qualify", "connect", "match", "sample", "distribute", "sort", "cluster"):
            if clause != "qualify" and tree.args.get(clause):
                raise _unsupported(clause.upper(), tree)
        relation = self._from(tree, environment)
        where = tree.args.get("where")
        if where is not None:
            relation = self._filtered(relation, where.this, environment)
        outputs = self._outputs(tree)
        for expr in outputs.values():
            self._replace_scalar_subqueries(expr, environment, is_condition=False)
            self._refuse_subqueries(expr)
        outputs = {name: expr.copy() for name, expr in outputs.items()}
        relation, outputs = self._generated(relation, outputs)
        having = tree.args.get("having")
        conditions = [having.this] if having is not None else []
        for condition in conditions:
            self._refuse_subqueries(condition)
        outputs = {name: _window_struct(expr, tree) for name, expr in outputs.items()}
        relation = self._aggregated(relation, tree, list(outputs.values()), conditions)
        if conditions:
            # Groups may come and go by the condition: what lies above is not additive any more.
            relation = Filter(relation, ())
        qualify_ = tree.args.get("qualify")
        computed = [*outputs.values(), *([qualify_.this] if qualify_ is not None else [])]
        relation = self._windowed(relation, tree, computed)
        if qualify_ is not None:
            relation = Filter(relation, ())
        relation = Project(relation, outputs)
        if tree.args.get("distinct"):
            if tree.args["distinct"].args.get("on"):
                raise _unsupported("DISTINCT ON", tree)
            relation = Distinct(relation, [column(name) for name in outputs])
        return relation, tuple(outputs)

    def _outputs(self, tree: exp.Select) -> dict[str, Expr]:
        outputs: dict[str, Expr] = {}
        for place, projection in enumerate(tree.expressions):
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                raise _unsupported("a star whose columns are not known", projection)
            name = projection.alias_or_name or f"_col_{place}"
            if name in outputs:
                raise _unsupported(f"two columns named {name}", projection)
            outputs[name] = bare(projection)
        return outputs

    # FROM --------------------------------------------------------------------------------------

    def _from(self, tree: exp.Select, environment: _Environment) -> Relation:
        from_ = tree.args.get("from_") or tree.args.get("from")
        if from_ is None:
            return Values("select 1 as one", ("one",))
        relation = self._source(from_.this, environment)
        for join in tree.args.get("joins") or ():
            relation = self._joined(relation, join, environment, tree)
        for lateral in tree.args.get("laterals") or ():
            relation = self._lateral(relation, lateral)
        return relation

    def _source(self, item: Expr, environment: _Environment) -> Relation:
        if item.args.get("sample") or item.args.get("pivots"):
            raise _unsupported("PIVOT or TABLESAMPLE", item)
        if isinstance(item, exp.Table):
            if item.args.get("joins") or item.args.get("laterals"):
                raise _unsupported("a nested join", item)
            if not item.db and item.name in environment:
                relation, names = environment[item.name]
            else:
                scan = self._scan_of(item.name)
                if scan is None:
                    raise _unsupported(f"{item.sql('spark')} in FROM", item)
                relation, names = scan, scan.names
            return Alias(relation, item.alias_or_name, names, _column_aliases(item))
        if isinstance(item, exp.Subquery):
            relation, names = self.query(item.this, environment)
            return Alias(relation, item.alias_or_name, names, _column_aliases(item))
        if isinstance(item, exp.Values):
            names = _column_aliases(item)
            if not names:
                raise _unsupported("VALUES without column names", item)
            return Values(f"select * from {item.sql('spark')}", names, item.alias_or_name)
        raise _unsupported(f"{item.sql('spark')[:60]} in FROM", item)

    def _joined(
        self, left: Relation, join: exp.Join, environment: _Environment, tree: exp.Select
    ) -> Relation:
        if join.args.get("using") or join.method:
            raise _unsupported(f"{join.method or 'USING'} join", join)
        clock = self._clock_joined(join, environment)
        if clock is not None:
            qualifier, occurrence = clock
            _replace_columns(tree, qualifier, occurrence)
            return left
        right = self._source(join.this, environment)
        qualifier = join.this.alias_or_name
        side, kind = (join.side or "").lower(), (join.kind or "").lower()
        condition = join.args.get("on")
        if condition is not None:
            self._refuse_subqueries(condition)
            if clock_values(condition):
                raise _unsupported("the clock in a join condition", condition)
        joined: JoinKind
        if kind in ("semi", "anti"):
            joined = "semi" if kind == "semi" else "anti"
        elif side == "left":
            joined = "left"
        elif side == "right":
            # A right join is the left join of the two sides swapped.
            lefts = frozenset(_qualifiers(left))
            keys = equi_keys(condition, lefts)
            return Join(right, left, "left", keys, lefts)
        elif side == "full":
            raise Unplannable(
                Reason(
                    "KEY_NOT_IN_OUTPUT",
                    "a full outer join has no preserved side",
                    line_of(join),
                    "union all of a left join and of the rows that only the right side has",
                )
            )
        else:
            joined = "inner" if condition is not None else "cross"
        rights = frozenset({qualifier})
        keys = equi_keys(condition, rights)
        where = tree.args.get("where")
        if joined == "cross" and where is not None:
            # `from a, b where a.k = b.k`: the condition of the join stands in WHERE.
            lefts = frozenset(_qualifiers(left))
            keys = [
                key
                for key in equi_keys(where.this, rights)
                if {found.table for found in columns_of(key.left)} <= lefts
            ]
            joined = "inner" if keys else "cross"
        return Join(left, right, joined, keys, rights)

    def _clock_joined(self, join: exp.Join, environment: _Environment) -> tuple[str, int] | None:
        """Return qualifier and occurrence if the joined item is the clock itself."""
        if join.args.get("on") is not None or (join.side or ""):
            return None
        item = join.this
        if not isinstance(item, exp.Table | exp.Subquery):
            return None
        relation = self._source(item, environment)
        scan = _only_scan(relation)
        if scan is None or not self._is_clock(scan.relation):
            return None
        self.parameters.setdefault(scan.occurrence, Parameter(scan.occurrence, scan.relation))
        return item.alias_or_name, scan.occurrence

    def _lateral(self, relation: Relation, lateral: Expr) -> Relation:
        if not isinstance(lateral, exp.Lateral) or not lateral.args.get("view"):
            raise _unsupported("a lateral subquery", lateral)
        alias = lateral.args["alias"]
        names = tuple(identifier.name for identifier in alias.args.get("columns") or ())
        if not names:
            raise _unsupported("LATERAL VIEW without column names", lateral)
        return Generate(
            relation,
            lateral.this,
            alias.name,
            names,
            outer=bool(lateral.args.get("outer")),
        )

    def _generated(
        self, relation: Relation, outputs: dict[str, Expr]
    ) -> tuple[Relation, dict[str, Expr]]:
        """Move a generator of the select list below it."""
        for name, expr in list(outputs.items()):
            call = bare(expr)
            called = function_name(call) or ""
            if called not in _GENERATORS:
                if any(function_name(node) in _GENERATORS for node in expr.walk()):
                    raise _unsupported("a generator inside an expression", expr)
                continue
            if called not in ("explode", "explode_outer"):
                raise _unsupported(f"{called} in a select list", expr)
            qualifier = f"__generated_{name}"
            outer = _GENERATORS[called]
            generator = exp.Explode(this=call.this.copy()) if outer else call
            relation = Generate(relation, generator, qualifier, (name,), outer=outer)
            outputs = {**outputs, name: column(name, qualifier)}
        return relation, outputs

    # WHERE -------------------------------------------------------------------------------------

    def _filtered(self, relation: Relation, condition: Expr, environment: _Environment) -> Relation:
        self._replace_scalar_subqueries(condition, environment, is_condition=True)
        self._refuse_subqueries(condition)
        bounds: list[ClockBound] = []
        bounded = bounds_of(condition)
        if bounded is None:
            conjuncts = _conjuncts(condition)
            for conjunct in conjuncts:
                found = bounds_of(conjunct)
                if found is None:
                    for marker in clock_values(conjunct):
                        self._parameter(int(marker.meta["occurrence"])).compared_with_time = False
                    continue
                bounds.extend(found)
        else:
            bounds.extend(bounded)
        return Filter(relation, tuple(bounds))

    def _parameter(self, occurrence: int) -> Parameter:
        return self.parameters[occurrence]

    def _replace_scalar_subqueries(
        self, expr: Expr, environment: _Environment, *, is_condition: bool
    ) -> None:
        """Replace scalar subqueries on one-row relations by markers of their value."""
        for subquery in list(expr.find_all(exp.Subquery)):
            if isinstance(subquery.parent, exp.Exists | exp.In | exp.From | exp.Join):
                continue
            if not isinstance(subquery.this, exp.Select) or _is_nested(subquery, expr):
                continue
            found = self._scalar(subquery.this, environment)
            if found is None:
                raise Unplannable(
                    Reason(
                        "SUBQUERY_NOT_INCREMENTALIZABLE",
                        f"scalar subquery {subquery.sql('spark')[:80]}",
                        line_of(subquery),
                        "join the value, or compute it in a model of its own",
                    )
                )
            scan, value = found
            self.parameters.setdefault(scan.occurrence, Parameter(scan.occurrence, scan.relation))
            if not is_condition:
                self.parameters[scan.occurrence].compared_with_time = False
            subquery.replace(value)

    def _scalar(self, select: exp.Select, environment: _Environment) -> tuple[Scan, Expr] | None:
        """Return scan and value of `select c from r` over a stored relation, unfiltered.

        The value may be moved by a constant (`select c - interval 1 hour from r`); in it the
        column is a marker.
        """
        plain = {"expressions", "from_", "from", "kind"}
        if any(value for key, value in select.args.items() if key not in plain):
            return None
        from_ = select.args.get("from_") or select.args.get("from")
        if len(select.expressions) != 1 or from_ is None:
            return None
        projected = bare(select.expressions[0])
        columns = list(projected.find_all(exp.Column))
        if len(columns) != 1 or not all(isinstance(node, _MOVED) for node in projected.walk()):
            return None
        relation = self._source(from_.this, environment)
        scan = _only_scan(relation)
        sites = relation.trace(columns[0]) if scan is not None else None
        if scan is None or not sites or not isinstance(sites[0][1], exp.Column):
            return None
        marker = clock_value(scan.occurrence, sites[0][1].name)
        if projected is columns[0]:
            return scan, marker
        columns[0].replace(marker)
        return scan, exp.Paren(this=projected)

    def _refuse_subqueries(self, condition: Expr) -> None:
        for node in condition.walk():
            if isinstance(node, exp.Query | exp.Exists):
                parent = node.parent
                negated = isinstance(parent, exp.In) and isinstance(parent.parent, exp.Not)
                code = "NULL_AWARE_ANTI" if negated else "SUBQUERY_NOT_INCREMENTALIZABLE"
                hint = "write NOT EXISTS or a left anti join" if negated else "write a semi join"
                text = (parent or node).sql("spark")[:80]
                raise Unplannable(Reason(code, f"subquery in {text}", line_of(node), hint))

    # Aggregates and windows --------------------------------------------------------------------

    def _aggregated(
        self, relation: Relation, tree: exp.Select, outputs: Sequence[Expr], having: list[Expr]
    ) -> Relation:
        group = tree.args.get("group")
        calls = [call for expr in (*outputs, *having) for call in _aggregate_calls(expr)]
        if group is None and not calls:
            return relation
        for call in calls:
            if is_order_dependent(call):
                raise Unplannable(
                    Reason(
                        "NONDETERMINISTIC_AGG",
                        f"{call.sql('spark')[:80]} depends on the order of rows",
                        line_of(call),
                        "take the row by row_number() with a unique last sort column",
                    )
                )
        keys: list[Expr] = []
        if group is not None:
            if any(
                group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "totals")
            ) or any(
                isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in group.walk()
            ):
                raise Unplannable(
                    Reason("GLOBAL_AGG", "grouping sets hold a total over all rows", line_of(group))
                )
            keys = [_window_struct(bare(key), tree) for key in group.expressions]
            if group.args.get("all"):
                keys = [expr for expr in outputs if not _aggregate_calls(expr)]
        if not keys:
            raise Unplannable(
                Reason(
                    "GLOBAL_AGG",
                    "an aggregate without GROUP BY depends on every row",
                    line_of(tree),
                    "aggregate by hour in a model upstream",
                )
            )
        return Aggregate(relation, keys)

    def _windowed(self, relation: Relation, tree: exp.Select, exprs: Sequence[Expr]) -> Relation:
        named = {window.this.name: window for window in tree.args.get("windows") or ()}
        windows = [
            self._window(relation, window, named)
            for expr in exprs
            for window in expr.find_all(exp.Window)
        ]
        # Windows of one SELECT read the same input: side by side they widen a change by the widest
        # of their frames, not by the sum.
        together: dict[tuple[str, ...], list[Window]] = {}
        for window in windows:
            order = sql_of(window.frame.order) if window.frame is not None else ""
            keys = (*(sql_of(key) for key in window.keys), "order", order)
            together.setdefault(keys, []).append(window)
        for group in together.values():
            frames = [window.frame for window in group if window.frame is not None]
            frame = None
            if frames:
                before = max(frame.before for frame in frames)
                frame = Frame(frames[0].order, before, max(frame.after for frame in frames))
            ranked = [rank for window in group for rank in window.ranked]
            relation = Window(relation, group[0].keys, frame, ranked)
        return relation

    def _window(self, relation: Relation, window: exp.Window, named: Mapping[str, Expr]) -> Window:
        spec: Expr = window
        if window.alias and window.alias in named:
            spec = named[window.alias]
        call = window.this
        if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
            call = call.this
        partition = [bare(key) for key in spec.args.get("partition_by") or ()]
        order = spec.args.get("order")
        frame = frame_of(spec, call)
        if not partition and frame is None:
            raise Unplannable(
                Reason(
                    "WINDOW_WITHOUT_PARTITION_BY",
                    f"{window.sql('spark')[:80]}",
                    line_of(window),
                    "add a PARTITION BY",
                )
            )
        sorts = [bare(item.this) for item in order.expressions] if order is not None else []
        ranked: list[Expr] = []
        if needs_total_order(call, spec):
            if not _is_total(relation, [*partition, *sorts]):
                order_text = order.sql("spark").strip() if order is not None else "no ORDER BY"
                raise Unplannable(
                    Reason(
                        "NONDETERMINISTIC_ORDER",
                        f"rows can tie: {order_text}",
                        line_of(window),
                        "end the order in a unique column",
                    )
                )
            if function_name(call) == "row_number":
                ranked.append(window)
        elif is_order_dependent(call):
            raise Unplannable(
                Reason("NONDETERMINISTIC_AGG", window.sql("spark")[:80], line_of(window))
            )
        return Window(relation, partition, frame, ranked)

    def _refuse_limit(self, tree: Expr) -> None:
        if tree.args.get("limit") or tree.args.get("offset") or tree.args.get("fetch"):
            ordered = tree.args.get("order") is not None
            code = "WINDOW_WITHOUT_PARTITION_BY" if ordered else "LIMIT_WITHOUT_ORDER"
            raise Unplannable(
                Reason(
                    code,
                    "LIMIT keeps rows by comparing all of them",
                    line_of(tree),
                    "rank within a key, and filter by the rank",
                )
            )


def check_functions(tree: Expr) -> None:
    """Raise Unplannable for a function that Spark does not bring along."""
    for node in tree.find_all(exp.Anonymous):
        name = str(node.this).lower()
        if name not in BUILT_IN_FUNCTIONS:
            raise Unplannable(
                Reason(
                    "UDF_NOT_DETERMINISTIC",
                    f"{name} is not a built-in function",
                    line_of(node),
                )
            )


def _is_total(relation: Relation, within: Sequence[Expr]) -> bool:
    return any(
        all(composed_of_text(text, within) for text in key) for key in relation.unique_keys()
    )


def composed_of_text(text: str, parts: Sequence[Expr]) -> bool:
    """Return True if the expression with this SQL text is one of `parts`."""
    return text in {sql_of(bare(part)) for part in parts}


def _aggregate_calls(expr: Expr) -> list[Expr]:
    """Return the aggregate calls in an expression that are not window functions."""
    found: list[Expr] = []

    def visit(node: Expr) -> None:
        if isinstance(node, exp.Window):
            # The arguments of a window function may hold aggregates of the same SELECT.
            call = node.this
            for part in [*call.iter_expressions(), *(node.args.get("partition_by") or ())]:
                visit(part)
            if node.args.get("order") is not None:
                visit(node.args["order"])
            return
        if isinstance(node, exp.Query):
            return
        if isinstance(node, exp.AggFunc) or function_name(node) in AGGREGATE_FUNCTIONS:
            found.append(node)
            return
        for child in node.iter_expressions():
            visit(child)

    visit(expr)
    return found


def _window_struct(expr: Expr, tree: exp.Select) -> Expr:
    """Replace `window.start`, which Spark names after the grouping call, by the call's field."""
    group = tree.args.get("group")
    if group is None:
        return expr
    calls = {
        name: key
        for key in map(bare, group.expressions)
        if (name := function_name(key)) in ("window", "session_window")
    }
    if not calls:
        return expr
    copy = expr.copy()
    for reference in list(columns_of(copy)):
        replacement: Expr | None = None
        if reference.table in calls:
            call = calls[reference.table].copy()
            replacement = exp.Dot(this=call, expression=exp.to_identifier(reference.name))
        elif not reference.table and reference.name in calls:
            replacement = calls[reference.name].copy()
        if replacement is not None:
            if reference is copy:
                return replacement
            reference.replace(replacement)
    return copy


def _conjuncts(condition: Expr) -> list[Expr]:
    condition = bare(condition)
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [condition]


def _only_scan(relation: Relation) -> Scan | None:
    """Return the scan at the foot of renamings alone."""
    while isinstance(relation, Alias | Project):
        relation = relation.inputs[0]
    return relation if isinstance(relation, Scan) else None


def _qualifiers(relation: Relation) -> list[str]:
    """Return the qualifiers visible in a FROM clause's relation."""
    if isinstance(relation, Alias | Values):
        return [relation.qualifier]
    if isinstance(relation, Generate):
        return [*_qualifiers(relation.inputs[0]), relation.qualifier]
    return [name for source in relation.inputs for name in _qualifiers(source)]


def _is_nested(subquery: Expr, root: Expr) -> bool:
    """Return True if another subquery stands between a subquery and the root."""
    node = subquery.parent
    while node is not None and node is not root:
        if isinstance(node, exp.Subquery):
            return True
        node = node.parent
    return False


def _column_aliases(item: Expr) -> tuple[str, ...]:
    alias = item.args.get("alias")
    return tuple(name.name for name in alias.args.get("columns") or ()) if alias else ()


def _replace_columns(tree: exp.Select, qualifier: str, occurrence: int) -> None:
    for reference in list(tree.find_all(exp.Column)):
        if reference.table == qualifier:
            reference.replace(clock_value(occurrence, reference.name))


def _unsupported(what: str, node: Expr) -> Unplannable:
    return Unplannable(Reason("PARSE_UNSUPPORTED", f"{what} has no rule", line_of(node)))


__all__ = ["Parameter", "Query", "build_query", "check_functions", "composed_of"]
