"""Turns qualified SQL into relations, one step at a time, innermost first.

Used by the planner. A shape without a rule is refused with its reason, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from livemart.plan.reading.correlated import beside_answer
from livemart.plan.reading.from_clause import Environment, FromClause, ScanOf
from livemart.plan.reading.groups_and_windows import aggregated, window_struct, windowed
from livemart.plan.reading.subqueries import (
    Parameter,
    is_within_query,
    refuse_attached,
    refuse_subqueries,
    unsupported,
)
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.relations.aggregate_calls import aggregate_calls
from livemart.plan.relations.clock import ClockBound, bounds_of, comparisons_in
from livemart.plan.relations.gate import Distinct, Matched, hopping_window
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.project import Compared, Filter, Projection
from livemart.plan.relations.relation import Expr, Relation, bare, column, conjuncts
from livemart.plan.relations.union import Union
from livemart.plan.sql.determinism import function_name, is_aggregate, line_of
from livemart.plan.sql.functions import GENERATORS
from livemart.plan.sql.written import sql_of


@dataclass(slots=True)
class Query:
    """A query as relations: `top` yields the output columns `names` as bare column names.

    `limits`: a reason for each LIMIT, which the relations leave out.
    """

    top: Relation
    names: tuple[str, ...]
    parameters: dict[int, Parameter] = field(default_factory=dict)
    limits: tuple[Reason, ...] = ()


def build_query(
    tree: exp.Query,
    scan_of: ScanOf,
    is_clock: Callable[[str], bool],
    *,
    begins_with_facts: bool = False,
) -> Query:
    """Return the relations of a qualified query.

    Args:
        tree: output of sqlglot's `qualify` over a flat text.
        scan_of: the scan of a placeholder name, None for any other table name.
        is_clock: True for relations that are the clock.
        begins_with_facts: comma joins begin with the table that looks up the others, and not with
            the one that is written first.

    Raises:
        Inapplicable: with the reason why no rule applies; behind those of each LIMIT, as there is
            more to mend than the LIMIT.
    """
    builder = _Builder(scan_of, is_clock, begins_with_facts=begins_with_facts)
    try:
        top, names = builder.query(tree, {})
    except Inapplicable as error:
        raise Inapplicable(error.reason, before=tuple(builder.limits)) from error
    return Query(top, names, builder.parameters, tuple(builder.limits))


class _Builder:
    def __init__(
        self, scan_of: ScanOf, is_clock: Callable[[str], bool], *, begins_with_facts: bool
    ) -> None:
        self.parameters: dict[int, Parameter] = {}
        # In the order in which they are met; a subquery may be read more than once.
        self.limits: dict[Reason, None] = {}
        self._answers = 0
        self._from = FromClause(
            scan_of, is_clock, self.query, self.parameters, begins_with_facts=begins_with_facts
        )

    # Queries -----------------------------------------------------------------------------------

    def query(self, tree: Expr, outer: Environment) -> tuple[Relation, tuple[str, ...]]:
        environment = dict(outer)
        with_ = tree.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise unsupported("a recursive common table expression", with_)
            for cte in with_.expressions:
                relation, names = self.query(cte.this, environment)
                renamed = tuple(cte.alias_column_names)
                if renamed:
                    relation = Projection(
                        relation,
                        {new: column(old) for new, old in zip(renamed, names, strict=True)},
                    )
                environment[cte.alias] = (relation, renamed or names)
        if isinstance(tree, exp.Subquery):
            refuse_attached(tree)
            relation, names = self.query(tree.this, environment)
            self._note_limit(tree)
            return _emptied(relation, tree), names
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, environment)
        if isinstance(tree, exp.Select):
            return self._select(tree, environment)
        raise unsupported(f"{type(tree).__name__.lower()} as a query", tree)

    def _set_operation(
        self, tree: exp.SetOperation, environment: Environment
    ) -> tuple[Relation, tuple[str, ...]]:
        self._note_limit(tree)
        kind = type(tree).__name__.upper()
        if not isinstance(tree, exp.Union | exp.Intersect | exp.Except):
            raise unsupported(kind, tree)
        if tree.args.get("by_name"):
            raise unsupported(f"{kind} BY NAME", tree)
        branches = [self.query(side, environment) for side in (tree.left, tree.right)]
        flat: list[Relation] = []
        names: list[tuple[str, ...]] = []
        for relation, names_of_branch in branches:
            if isinstance(relation, Union) and names_of_branch == relation.names:
                flat.extend(relation.inputs)
                names.extend(relation.branch_names)
            else:
                flat.append(relation)
                names.append(names_of_branch)
        union: Relation = Union(flat, names)
        if not isinstance(tree, exp.Union):
            # Behind another operation without brackets Spark may take it first: a row may repeat.
            is_plain = not any(isinstance(it, exp.SetOperation) for it in (tree.left, tree.right))
            is_distinct = bool(tree.args.get("distinct")) and is_plain
            union = Matched(union, [column(name) for name in names[0]], is_distinct=is_distinct)
        elif tree.args.get("distinct"):
            union = Distinct(union, [column(name) for name in names[0]])
        return _emptied(union, tree), names[0]

    def _select(
        self, tree: exp.Select, environment: Environment
    ) -> tuple[Relation, tuple[str, ...]]:
        self._note_limit(tree)
        for clause in ("connect", "match", "sample", "distribute", "sort", "cluster"):
            if tree.args.get(clause):
                raise unsupported(clause.upper(), tree)
        relation = self._from.relation(tree, environment)
        where = tree.args.get("where")
        if where is not None:
            relation = self._filtered(relation, where.this, environment)
        outputs = self._outputs(tree)
        for name, expr in outputs.items():
            relation, asked = self._with_answers(relation, expr, environment)
            outputs[name] = self._from.put_values(asked, environment)
            refuse_subqueries(outputs[name])
        outputs = {name: expr.copy() for name, expr in outputs.items()}
        if tree.args.get("group") is None:
            for expr in outputs.values():
                if (window := hopping_window(expr)) is not None:
                    raise unsupported("a sliding window outside GROUP BY", window)
        is_grouped = tree.args.get("group") is not None or tree.args.get("having") is not None
        is_grouped = is_grouped or any(map(aggregate_calls, outputs.values()))
        if not is_grouped:
            relation, outputs = self._generated(relation, outputs, is_above=False)
        having = tree.args.get("having")
        conditions = [having.this] if having is not None else []
        qualify_ = tree.args.get("qualify")
        above = [qualify_.this] if qualify_ is not None else []
        group = tree.args.get("group")
        named = tree.args.get("windows") or []
        for clause in (*conditions, *above, *named, *([group] if group is not None else [])):
            self._from.put_values(clause, environment)
        for clause in (*conditions, *above, *named):
            refuse_subqueries(clause)
        outputs = {name: window_struct(expr, tree) for name, expr in outputs.items()}
        relation = self._compared(relation, [*outputs.values(), *_other_clauses(tree)])
        relation = aggregated(relation, tree, list(outputs.values()), conditions, above)
        if conditions:
            # Groups may come and go by the condition: a step above this one is not additive any
            # more.
            relation = Filter(relation, ())
        relation = windowed(relation, tree, [*outputs.values(), *above])
        if qualify_ is not None:
            relation = Filter(relation, ())
        relation, outputs = self._generated(
            relation, outputs, is_above=None if is_grouped else True
        )
        relation = Projection(relation, outputs)
        if tree.args.get("distinct"):
            if tree.args["distinct"].args.get("on"):
                raise unsupported("DISTINCT ON", tree)
            relation = Distinct(relation, [column(name) for name in outputs])
        return _emptied(relation, tree), tuple(outputs)

    def _outputs(self, tree: exp.Select) -> dict[str, Expr]:
        outputs: dict[str, Expr] = {}
        for place, projection in enumerate(tree.expressions):
            if isinstance(projection, exp.Star) or (
                isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
            ):
                raise unsupported("a star whose columns are not known", projection)
            name = projection.alias_or_name or f"_col_{place}"
            if name in outputs:
                if not _is_later_branch(tree):
                    raise unsupported(f"two columns named {name}", projection)
                name = f"{name}__{place}"
            outputs[name] = bare(projection)
        return outputs

    def _generated(
        self, relation: Relation, outputs: dict[str, Expr], *, is_above: bool | None
    ) -> tuple[Relation, dict[str, Expr]]:
        """Move a generator of the select list below it.

        Args:
            is_above: move those over aggregates and windows, which are above these, and no others;
                None: move all. Spark makes rows of groups, whatever the generator reads.
        """
        for name, expr in list(outputs.items()):
            call = bare(expr)
            has_names = isinstance(call, exp.Aliases)
            call = call.this if has_names else call
            called = function_name(call) or ""
            if called not in GENERATORS:
                if any(function_name(node) in GENERATORS for node in expr.walk()):
                    raise unsupported("a generator inside an expression", expr)
                continue
            if has_names or called not in ("explode", "explode_outer"):
                word = "outer " if called.endswith("_outer") else ""
                raise refusal(
                    "PARSE_UNSUPPORTED",
                    f"{called} in a select list has no rule",
                    line_of(call),
                    "write it behind the tables:"
                    f" `lateral view {word}{called.removesuffix('_outer')}(...) t as a, b`",
                )
            of_gates = any(is_aggregate(it) or isinstance(it, exp.Window) for it in call.walk())
            if is_above is not None and is_above != of_gates:
                continue
            self._from.read_for_values(call)
            qualifier = f"__generated_{name}"
            outer = called == "explode_outer"
            generator = exp.Explode(this=call.this.copy()) if outer else call
            relation = Generate(relation, generator, qualifier, (name,), outer=outer)
            outputs = {**outputs, name: column(name, qualifier)}
        return relation, outputs

    # WHERE -------------------------------------------------------------------------------------

    def _filtered(self, relation: Relation, condition: Expr, environment: Environment) -> Relation:
        relation, condition = self._with_answers(
            relation, condition, environment, is_condition=True
        )
        condition = self._from.put_values(condition, environment)
        refuse_subqueries(condition)
        windows: list[ClockBound] = []
        others: list[Expr] = []
        for conjunct in conjuncts(condition):
            bounds = bounds_of(conjunct)
            if bounds is None:
                others.append(conjunct)
            else:
                windows += bounds
        return Filter(self._compared(relation, others), tuple(windows))

    def _compared(self, relation: Relation, clauses: Sequence[Expr]) -> Relation:
        """Return the relation, with the comparisons of a time with the clock that the clauses make.

        If a clause uses a clock in another way, the rows that the clock moves are unknown.
        """
        comparisons: list[ClockBound] = []
        for clause in clauses:
            bounds = comparisons_in(clause)
            if bounds is None:
                self._from.read_for_values(clause)
            else:
                comparisons += bounds
        return Compared(relation, tuple(comparisons)) if comparisons else relation

    def _with_answers(
        self,
        relation: Relation,
        expr: Expr,
        environment: Environment,
        *,
        is_condition: bool = False,
    ) -> tuple[Relation, Expr]:
        """Return what is read with what the correlated subqueries of an expression depend on.

        The expression names their answers. That of `x in (...)` is NULL for what it does not
        find beside a NULL: only where NULL is as good as false, it depends on equal rows alone.
        """
        tests = [expr] if is_condition else []
        tests += [node.this for node in expr.find_all(exp.If) if not _is_compared(node)]
        as_false = {id(node) for test in tests for node in _as_false(test)}
        for node in list(expr.find_all(exp.Exists, exp.Subquery, exp.In)):
            compared, query = None, node.this
            if isinstance(node, exp.In):
                compared, query = node.this, node.args.get("query")
                is_of_row = not aggregate_calls(compared) and compared.find(exp.Window) is None
                if id(node) not in as_false or not is_of_row:
                    continue
            elif isinstance(node, exp.Subquery):
                query = node
                if isinstance(node.parent, exp.Exists | exp.In | exp.Any | exp.All):
                    continue
            if not isinstance(query, exp.Query) or is_within_query(node, expr):
                continue
            self._answers += 1
            beside = beside_answer(
                relation,
                query,
                f"__livemart_answer_{self._answers}",
                lambda select: self._from.query_beside(select, environment),
                compared=compared,
                is_existence=isinstance(node, exp.Exists),
            )
            if beside is None:
                continue
            relation, answer = beside
            if node is expr:
                return relation, answer
            node.replace(answer)
        return relation, expr

    def _note_limit(self, tree: Expr) -> None:
        limit, offset = _written_count(tree, "limit"), _written_count(tree, "offset")
        if limit == "0" or (limit in (None, "ALL") and offset in (None, "0")):
            # No row is chosen before another one.
            return
        if tree.args.get("order") is None:
            code, message = (
                "LIMIT_WITHOUT_ORDER",
                "LIMIT keeps some rows, and no order determines which",
            )
            suggestion = "order by columns that end in a unique one"
        else:
            code, message = "GLOBAL_LIMIT", "LIMIT keeps rows by comparing all of them"
            suggestion = "store the rows in a model without LIMIT: this one then reads only that"
        self.limits[Reason(code, message, line_of(tree), suggestion)] = None


def _written_count(tree: Expr, clause: str) -> str | None:
    """Return the text of a query's LIMIT or OFFSET, in capitals; None if it has none."""
    if (part := tree.args.get(clause)) is None:
        return None
    return sql_of(part.args.get("expression") or part).upper()


def _emptied(relation: Relation, tree: Expr) -> Relation:
    """Return a query's relation below its `limit 0`, which keeps rows as `where false` does."""
    return Filter(relation, ()) if _written_count(tree, "limit") == "0" else relation


def _as_false(condition: Expr) -> Iterator[Expr]:
    """Yield the parts of a condition that may as well be false where they are NULL.

    A conjunction is true where both parts are, and a disjunction where one of them is.
    """
    condition = bare(condition)
    if isinstance(condition, exp.And | exp.Or):
        yield from _as_false(condition.left)
        yield from _as_false(condition.right)
    else:
        yield condition


def _is_compared(branch: exp.If) -> bool:
    """Return True for a branch of a CASE that compares a value: NULL may be no false there."""
    return isinstance(branch.parent, exp.Case) and branch.parent.this is not None


def _other_clauses(tree: exp.Select) -> list[Expr]:
    """Return the clauses other than FROM, WHERE and the select list."""
    below = ("expressions", "where", "from_", "joins", "with_", "order")
    return [clause for clause in tree.iter_expressions() if clause.arg_key not in below]


def _is_later_branch(tree: Expr) -> bool:
    """Return True for a branch of a set operation that does not give the columns their names."""
    while isinstance(tree.parent, exp.SetOperation | exp.Subquery):
        if isinstance(tree.parent, exp.SetOperation) and tree.arg_key == "expression":
            return True
        tree = tree.parent
    return False
