"""Notes the reasons for which each refresh of an incremental model is expensive.

Used by the planner; `plan` shows it. No note changes how a model is refreshed: the analyst learns
what to bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Reason
from livemart.plan.relations.aggregate_calls import called, specification
from livemart.plan.relations.relation import Restriction
from livemart.plan.sql.determinism import function_name, line_of
from livemart.plan.sql.written import sql_of

# A change alters only the neighbours or the places of these, wherever the frame ends.
_OF_PLACES = frozenset(
    {
        "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
        "first", "last", "first_value", "last_value", "nth_value",
    }
)  # fmt: skip
_INEQUALITIES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


@dataclass(frozen=True, slots=True)
class KnownRelations:
    """The facts that notes ask for about the relations of a query.

    `relations`: by name in the query; `growing`: event time, or None, of each that only ever gets
    longer; `clocks`: relations of one row.
    """

    relations: Mapping[str, str]
    growing: Mapping[str, str | None]
    clocks: Set[str]


def notes_of(query: exp.Query, facts: KnownRelations) -> tuple[Reason, ...]:
    """Return the notes on the SQL of a qualified query, in order of their kind."""
    notes = [*_unbounded_frames(query)]
    for scope in traverse_scope(query):
        if isinstance(scope.expression, exp.Select):
            notes += _joins_without_band(scope, facts)
            notes += _joined_clocks(scope, facts)
    return tuple(dict.fromkeys(notes))


def growth(
    restrictions: Mapping[int, tuple[Restriction, ...]],
    relations: Mapping[int, str],
    growing: Mapping[str, str | None],
    unique: Mapping[str, tuple[tuple[str, ...], ...]],
) -> Reason | None:
    """Return the note on a region that reads the whole history of its keys.

    Args:
        restrictions: of the region.
        relations: by occurrence; those that a window against the clock bounds are left out.
        growing: see `KnownRelations`.
        unique: the columns of which no two rows of a relation agree in all, for each such key.
    """
    for occurrence, alternatives in restrictions.items():
        relation = relations.get(occurrence, "")
        if relation not in growing:
            continue
        time = growing[relation]
        for restriction in alternatives:
            names = {column.lower() for _, column, _ in restriction.keys}
            exact = {column.lower() for _, column, margin in restriction.keys if margin == 0}
            keys_of_rows = unique.get(relation, ())
            if any(exact >= {column.lower() for column in key} for key in keys_of_rows):
                # One row of each key, however long the relation gets.
                continue
            if restriction.time is None and (time or "").lower() not in names:
                keys = ", ".join(sorted(names))
                rows = f"all that {relation} has ever had of its {keys}"
                if not keys:
                    rows = f"all rows that {relation} has ever had"
                advice = "group by hour or day in a model below, or bound the time"
                if exact and not keys_of_rows:
                    advice += f"; if {keys} is the key of its rows, declare it"
                return Reason(
                    "GROWTH_UNBOUNDED",
                    f"a refresh reads {rows}",
                    None,
                    advice,
                )
    return None


def growth_of_values(value: exp.Expr, relation: str) -> Reason:
    """Return the note on a stage that has each value which a growing relation ever had."""
    return Reason(
        "GROWTH_UNBOUNDED",
        f"a stage stores each {sql_of(value)[:80]} that {relation} has ever had",
        line_of(value),
        "if it is the key of its rows, declare it; `stages: never` computes it in full",
    )


def _unbounded_frames(query: exp.Query) -> Iterator[Reason]:
    for window in query.find_all(exp.Window):
        spec = specification(window, window.find_ancestor(exp.Select))
        call = called(window)
        if not isinstance(call, exp.AggFunc) or function_name(call) in _OF_PLACES:
            continue
        if spec.args.get("order") is None:
            continue
        bounds = spec.args.get("spec")
        ends = [
            str((bounds.args.get(side) if bounds is not None else default) or default).upper()
            for side, default in (("start", "UNBOUNDED"), ("end", "CURRENT ROW"))
        ]
        if ends.count("UNBOUNDED") == 1:
            side = "after" if ends[0] == "UNBOUNDED" else "before"
            yield Reason(
                "WINDOW_UNBOUNDED",
                f"a change alters every row {side} it: {sql_of(window)[:80]}",
                line_of(window),
                "bound the frame: range between interval 168 hours preceding and current row",
            )


def _joins_without_band(scope: Scope, facts: KnownRelations) -> Iterator[Reason]:
    select = scope.expression
    # Only what FROM names: every common table expression is a source of a scope.
    before = [name for name, (_, source) in scope.selected_sources.items() if _grows(source, facts)]
    times = {time.lower() for time in facts.growing.values() if time}
    where = select.args.get("where")
    for join in select.args.get("joins") or ():
        name, on = join.this.alias_or_name, join.args.get("on")
        if on is None or name not in before or on.find(exp.EQ) is None:
            continue
        others = {column.table for column in on.find_all(exp.Column) if column.table in before} - {
            name
        }
        if not others:
            continue
        conditions = [on, *([where] if where is not None else [])]
        if not any(
            _is_band(node, name, others, times)
            for condition in conditions
            for node in condition.walk()
        ):
            yield Reason(
                "JOIN_UNBOUNDED_TIME",
                f"no bound on the time between rows of {name} and {', '.join(sorted(others))}",
                line_of(join),
                "add a band: and a.happened_at between b.happened_at and b.happened_at + interval "
                "24 hours",
            )


def _is_band(node: exp.Expr, name: str, others: set[str], times: set[str]) -> bool:
    """Return True if a condition bounds the distance between the rows of two sides."""
    columns = list(node.find_all(exp.Column))
    tables = {column.table for column in columns}
    if name not in tables or not tables & others:
        return False
    if isinstance(node, exp.EQ):
        return any(column.name.lower() in times for column in columns)
    return isinstance(node, _INEQUALITIES)


def _grows(source: exp.Expr | Scope, facts: KnownRelations) -> bool:
    if isinstance(source, exp.Table):
        return facts.relations.get(source.name.lower(), "") in facts.growing
    if not isinstance(source, Scope):
        return False
    select = source.expression
    if isinstance(select, exp.Select) and (select.args.get("group") or select.args.get("distinct")):
        return False
    read = [selected for _, selected in source.selected_sources.values()]
    return any(_grows(read_source, facts) for read_source in [*read, *source.set_operation_scopes])


def _joined_clocks(scope: Scope, facts: KnownRelations) -> Iterator[Reason]:
    """Find tables joined for one time that rows are compared with, which may hold many rows."""
    select = scope.expression
    where = select.args.get("where")
    if where is None:
        return
    for join in select.args.get("joins") or ():
        table = join.this
        relation = facts.relations.get(table.name.lower()) if isinstance(table, exp.Table) else None
        if relation is None or relation in facts.clocks:
            continue
        if join.args.get("on") is not None or join.args.get("using"):
            continue
        alias = table.alias_or_name
        read = {column.name for column in select.find_all(exp.Column) if column.table == alias}
        compared = any(
            {alias} < {column.table for column in node.find_all(exp.Column)}
            and node.find(exp.Interval) is not None
            for node in where.find_all(*_INEQUALITIES)
        )
        if compared and len(read) == 1:
            name = next(iter(read))
            yield Reason(
                "CLOCK_NOT_ONE_ROW",
                f"nothing says that {relation} holds one row: when it changes, every row is read",
                line_of(join),
                f"read it as a value: (select {alias}.{name} from {relation} as {alias})",
            )
