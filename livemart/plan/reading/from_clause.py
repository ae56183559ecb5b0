"""Turns a FROM clause into relations: tables, subqueries, joins and lateral views.

Used by scopes, for each SELECT. An item that no relation can express is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from livemart.plan.reading.correlated import items_of_from, joined_lateral
from livemart.plan.reading.join_order import facts_first, joins_in_order, keys_with
from livemart.plan.reading.subqueries import (
    Parameter,
    is_within_query,
    only_scan,
    refuse_attached,
    refuse_subqueries,
    scalar_value,
    unsupported,
)
from livemart.plan.reading.using import merge_keys
from livemart.plan.reasons import refusal
from livemart.plan.relations.alias import Alias
from livemart.plan.relations.clock import OF_ANY_TYPE, clock_value, clock_values
from livemart.plan.relations.equi_keys import equi_keys
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join, JoinKind
from livemart.plan.relations.kinds import UNKNOWN, ValueKind, common_kind, value_kind
from livemart.plan.relations.relation import Expr, Relation, Scan, bare, column, replaced
from livemart.plan.relations.spelled_rows import InlineRows
from livemart.plan.sql.determinism import function_name, line_of
from livemart.plan.sql.flatten import is_stage_relation
from livemart.plan.sql.functions import GENERATORS
from livemart.plan.sql.written import sql_of

# Spark takes these for tables alone.
_OF_LATERAL_VIEW = GENERATORS - {"variant_explode", "variant_explode_outer"}
# The common table expressions in sight, by name: relation and names of the columns.
Environment = Mapping[str, tuple[Relation, tuple[str, ...]]]
ScanOf = Callable[[str], Scan | None]
RelationOfQuery = tuple[Relation, tuple[str, ...]]


@dataclass(eq=False)
class FromClause:
    """Turns FROM clauses into relations.

    Args:
        scan_of: the scan of a placeholder name, None for any other table name.
        is_clock: True for relations that are the clock.
        query: turns a subquery into a relation and the names of its columns.
        parameters: gains the clocks that are joined for their value.
        begins_with_facts: see `build_query`.
    """

    scan_of: ScanOf
    is_clock: Callable[[str], bool]
    query: Callable[[Expr, Environment], tuple[Relation, tuple[str, ...]]]
    parameters: dict[int, Parameter]
    begins_with_facts: bool = False

    def relation(self, tree: exp.Select, environment: Environment) -> Relation:
        """Return the joined relations that a SELECT reads.

        Raises:
            Inapplicable: PARSE_UNSUPPORTED, KEY_NOT_IN_OUTPUT.
        """
        from_ = tree.args.get("from_")
        if from_ is None:
            return InlineRows("select 1 as one", ("one",))
        joins = [
            join
            for join in tree.args.get("joins") or ()
            if not self._is_clock_joined(join, environment, tree)
        ]
        where = tree.args.get("where")
        condition = where and where.this

        item = from_.this
        if self.begins_with_facts:
            item, joins = facts_first(
                item, joins, condition, lambda it: self._unique_keys(it, environment)
            )
        relation = self.source(item, environment)
        for join, conditions in joins_in_order(joins, [item.alias_or_name], condition):
            relation = self._joined(relation, join, environment, tree, conditions)
        for lateral in tree.args.get("laterals") or ():
            if not isinstance(lateral, exp.Lateral) or not lateral.args.get("view"):
                raise unsupported("a lateral subquery", lateral)
            outer = bool(lateral.args.get("outer"))
            relation = self._generated(relation, lateral, lateral.this, environment, outer=outer)
        return relation

    def read_for_values(self, expr: Expr) -> None:
        """Note that an expression does more with a clock in it than to compare a time with it."""
        for marker in clock_values(expr):
            self.parameters[int(marker.meta["occurrence"])].compared_with_time = False

    def put_values(self, expr: Expr, environment: Environment) -> Expr:
        """Return an expression with values for its scalar subqueries on one-row relations.

        Raises:
            Inapplicable: PARSE_UNSUPPORTED, SUBQUERY_NOT_INCREMENTALIZABLE.
        """
        for subquery in list(expr.find_all(exp.Subquery)):
            if isinstance(subquery.parent, exp.Exists | exp.In | exp.From | exp.Join):
                continue
            if not isinstance(subquery.this, exp.Select) or is_within_query(subquery, expr):
                continue
            if isinstance(subquery.parent, exp.Any | exp.All):
                raise unsupported("a comparison with any or all of a query", subquery.parent)
            scan_and_value = scalar_value(
                subquery.this, lambda item: self.source(item, environment)
            )
            if scan_and_value is None:
                raise refusal(
                    "SUBQUERY_NOT_INCREMENTALIZABLE",
                    f"scalar subquery {sql_of(subquery)[:80]}",
                    line_of(subquery),
                    "join the value, or compute it in a separate model",
                )
            scan, value = scan_and_value
            if is_stage_relation(scan.relation):
                # It need not be a time.
                for marker in clock_values(value):
                    marker.meta[OF_ANY_TYPE] = True
            self.parameters.setdefault(scan.occurrence, Parameter(scan.occurrence, scan.relation))
            subquery.replace(value)
            expr = value if subquery is expr else expr
        return expr

    def _unique_keys(self, item: Expr, environment: Environment) -> Sequence[frozenset[str]]:
        """Return the unique keys of a table or a common table expression, as SQL."""
        is_table = isinstance(item, exp.Table)
        return self.source(item, environment).unique_keys() if is_table else ()

    def source(self, item: Expr, environment: Environment) -> Relation:
        """Return one item of FROM: a table, a common table expression, a subquery or VALUES."""
        refuse_attached(item)
        if isinstance(item, exp.Table):
            if not item.db and item.name in environment:
                relation, names = environment[item.name]
            else:
                scan = self.scan_of(item.name)
                if scan is None:
                    raise unsupported(f"{sql_of(item)} in FROM", item)
                # The query names the column in lower case; the table below it may spell the name
                # differently.
                aliases = item.alias_column_names or [name.lower() for name in scan.names]
                return Alias(scan, item.alias_or_name, scan.names, tuple(aliases))
            return Alias(relation, item.alias_or_name, names, tuple(item.alias_column_names))
        if isinstance(item, exp.Subquery):
            relation, names = self.query(item.this, environment)
            return Alias(relation, item.alias_or_name, names, tuple(item.alias_column_names))
        if isinstance(item, exp.Values):
            names = tuple(item.alias_column_names)
            if not names:
                raise unsupported("VALUES without column names", item)
            refuse_subqueries(item)
            query, kinds = f"select * from {sql_of(item)}", _kinds_of(item, names)
            return InlineRows(query, names, item.alias_or_name, kinds)
        raise unsupported(f"{sql_of(item)[:60]} in FROM", item)

    def _joined(
        self,
        left: Relation,
        join: exp.Join,
        environment: Environment,
        tree: exp.Select,
        conditions: Sequence[Expr],
    ) -> Relation:
        """Return one more item joined.

        Args:
            conditions: hold for every row of an inner join, whichever join or clause has them.
        """
        if join.args.get("pivots"):
            raise unsupported("PIVOT or UNPIVOT of joined tables", join)
        if join.args.get("using") or join.method:
            raise unsupported(f"{join.method or 'USING'} join", join)
        if isinstance(join.this, exp.Lateral) and not join.this.args.get("view"):
            return self._joined_lateral(left, join, environment)
        right = self.source(join.this, environment)
        qualifier = join.this.alias_or_name
        side, kind = (join.side or "").lower(), (join.kind or "").lower()
        condition = join.args.get("on")
        _refuse_in_condition(condition)
        joined: JoinKind
        if kind in ("semi", "anti"):
            joined = "semi" if kind == "semi" else "anti"
        elif side == "left":
            joined = "left"
        elif side == "right":
            _refuse_comma_before(join, tree)
            # A right join is the left join of the two sides swapped.
            lefts = frozenset(_qualifiers(left))
            keys = equi_keys(condition, lefts)
            merge_keys(tree, keys)
            return Join(right, left, "left", keys, lefts)
        elif side == "full":
            raise refusal(
                "KEY_NOT_IN_OUTPUT",
                "a full outer join has no preserved side",
                line_of(join),
                "union all of a left join and of the rows that only the right side has",
            )
        else:
            joined = "inner" if condition is not None else "cross"
        rights = frozenset({qualifier})
        keys = equi_keys(condition, rights)
        merge_keys(tree, keys)
        if joined in ("inner", "cross"):
            # `from a, b where a.k = b.k`: the condition of the join is written in WHERE.
            before = _qualifiers(left)
            keys = keys_with([condition] if condition is not None else [], rights, before)
            keys = keys or keys_with(conditions, rights, before)
            joined = "inner" if keys or condition is not None else "cross"
        return Join(left, right, joined, keys, rights)

    def query_beside(self, select: Expr, environment: Environment) -> RelationOfQuery:
        """Return a subquery's relation; it may not join the clock, whose value it would need.

        Raises:
            Inapplicable: PARSE_UNSUPPORTED.
        """
        for item in items_of_from(select):
            scan = self.scan_of(item.name) if isinstance(item, exp.Table) else None
            if scan is not None and self.is_clock(scan.relation):
                raise unsupported("the clock joined in a correlated subquery", item)
        return self.query(select, environment)

    def _joined_lateral(self, left: Relation, join: exp.Join, environment: Environment) -> Relation:
        side = (join.side or "").lower()
        if side not in ("", "left") or (join.kind or "").lower() in ("semi", "anti"):
            raise unsupported(f"a lateral subquery behind a {side or join.kind} join", join)
        condition = join.args.get("on")
        _refuse_in_condition(condition)
        call = _generator_of(join.this.this)
        if call is not None or not isinstance(join.this.this, exp.Query | exp.Subquery):
            if condition is not None and condition != exp.true():
                raise unsupported("a condition on a lateral function", join)
            if call is None:
                raise unsupported(f"lateral {sql_of(join.this.this)[:60]}", join)
            return self._generated(left, join.this, call, environment, outer=side == "left")
        relation = joined_lateral(
            left,
            join.this.this,
            join.this.alias_or_name,
            lambda select: self.query_beside(select, environment),
            "left" if side else "inner",
        )
        if relation is None or join.this.alias_column_names:
            raise unsupported("a lateral subquery without an equality", join)
        return relation

    def _is_clock_joined(self, join: exp.Join, environment: Environment, tree: exp.Select) -> bool:
        """Return whether a join is with the clock; its columns in `tree` are then its values."""
        clock = self._clock_joined(join, environment)
        if clock is not None:
            _replace_columns(tree, *clock)
        return clock is not None

    def _clock_joined(
        self, join: exp.Join, environment: Environment
    ) -> tuple[str, dict[str, Expr]] | None:
        """Return qualifier and columns, over the clock's values, if one row of it is joined."""
        if join.args.get("on") is not None or (join.side or ""):
            return None
        item = join.this
        if not isinstance(item, exp.Table | exp.Subquery):
            return None
        relation = self.source(item, environment)
        scan = only_scan(relation)
        if scan is None or not self.is_clock(scan.relation):
            return None
        self.parameters.setdefault(scan.occurrence, Parameter(scan.occurrence, scan.relation))
        qualifier = item.alias_or_name
        assert isinstance(relation, Alias)
        sites = {name: relation.trace(column(name, qualifier)) for name in relation.names}
        occurrence = scan.occurrence
        return qualifier, {
            name: replaced(traced[0][1], lambda it: clock_value(occurrence, it.name))
            for name, traced in sites.items()
            if traced
        }

    def _generated(
        self,
        relation: Relation,
        lateral: exp.Lateral,
        generator: Expr,
        environment: Environment,
        *,
        outer: bool,
    ) -> Relation:
        """Return a relation with what `lateral view explode(x)` or `lateral explode(x)` adds."""
        names = tuple(lateral.alias_column_names or _names_of(lateral.this))
        if not names:
            raise refusal(
                "PARSE_UNSUPPORTED",
                "a generator without column names has no rule",
                line_of(lateral),
                "name them: `lateral view explode(dishes) d as dish`",
            )
        generator = self.put_values(generator, environment)
        refuse_subqueries(generator)
        self.read_for_values(generator)
        return Generate(relation, generator, lateral.alias, names, outer=outer)


def _kinds_of(values: exp.Values, names: Sequence[str]) -> dict[str, ValueKind]:
    """Return the kind of each column of VALUES whose rows are in brackets, NULL aside."""
    columns = zip(*(row.expressions for row in values.expressions), strict=False)
    return {
        name: common_kind(
            value_kind(value, lambda _: UNKNOWN) for value in column if value != exp.null()
        )
        for name, column in zip(names, columns, strict=False)
    }


def _generator_of(lateral: Expr) -> Expr | None:
    """Return the generator of `lateral explode(x)`, or of `lateral (select explode(x) as y)`."""
    call = lateral
    if isinstance(lateral, exp.Subquery) and isinstance(select := lateral.this, exp.Select):
        others = (
            value for name, value in select.args.items() if name not in ("expressions", "kind")
        )
        if len(select.expressions) != 1 or any(others):
            return None
        call = bare(select.expressions[0])
    return call if function_name(call) in _OF_LATERAL_VIEW else None


def _names_of(lateral: Expr) -> list[str]:
    """Return the column of `(select explode(x) as y)`, if it has a name."""
    is_query = isinstance(lateral, exp.Subquery)
    return [it.alias for it in lateral.this.expressions if it.alias] if is_query else []


def _refuse_in_condition(condition: Expr | None) -> None:
    """Raise Inapplicable for a question that a join condition may not ask."""
    if condition is not None:
        refuse_subqueries(condition, "compare with it in a subquery, and join that")
        if clock_values(condition):
            raise unsupported("the clock in a join condition", condition)


def _refuse_comma_before(join: exp.Join, tree: exp.Select) -> None:
    """Raise Inapplicable for `from a, b right join c`: only b is joined with c.

    The parser gives that the tree of `from a cross join b right join c`.
    """
    for before in tree.args["joins"]:
        if before is join:
            return
        if (before.kind or "").upper() == "CROSS":
            raise unsupported("a right join after a comma or a cross join", join)


def _qualifiers(relation: Relation) -> list[str]:
    """Return the qualifiers visible in a FROM clause's relation."""
    if isinstance(relation, Alias | InlineRows):
        return [relation.qualifier]
    if isinstance(relation, Generate):
        return [*_qualifiers(relation.inputs[0]), relation.qualifier]
    return [name for source in relation.inputs for name in _qualifiers(source)]


def _replace_columns(tree: exp.Select, qualifier: str, columns: Mapping[str, Expr]) -> None:
    for reference in list(tree.find_all(exp.Column)):
        if reference.table == qualifier:
            if reference.name not in columns:
                raise unsupported(f"{sql_of(reference)}, which the clock has not,", reference)
            value = columns[reference.name].copy()
            reference.replace(value if isinstance(value, exp.Column) else exp.Paren(this=value))
