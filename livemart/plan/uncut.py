"""Plans a query as it is written, without cutting it.

Used by the planner for a whole query and for each of its stages. Never fails: SQL without a rule is
recomputed in full, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache

from sqlglot import exp

from livemart.errors import first_lines
from livemart.plan.notes import KnownRelations, growth, notes_of
from livemart.plan.plan import FinalFlag, Full, Inputs, Moving, Plan, Strategy
from livemart.plan.reading.guards import (
    check_functions,
    check_group_aliases,
    check_names,
    check_window_notes,
    check_windows,
    group_aliases,
    unknown_column,
)
from livemart.plan.reading.join_order import has_comma_joins
from livemart.plan.reading.scopes import Query, build_query
from livemart.plan.reading.using import mark_written
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.relations.clock import CLOCK_COLUMN, comparisons_in
from livemart.plan.relations.relation import Renaming, Scan, bare, column
from livemart.plan.sql.clock_rows import select_from_clock
from livemart.plan.sql.determinism import names_zone, require_deterministic
from livemart.plan.sql.flatten import Flat, Occurrence, is_stage_relation
from livemart.plan.sql.names import even_out, note_names
from livemart.plan.sql.parse import parse, qualified
from livemart.plan.sql.used_columns import used_columns
from livemart.plan.sql.written import sql_of
from livemart.plan.strategies.region import Region, region_of
from livemart.plan.strategies.running import running_totals
from livemart.plan.strategies.signed import signed_change
from livemart.plan.strategies.slices import PlanFacts, slices_of
from livemart.plan.strategies.ties import computed_among_ties, ties_of
from livemart.spark_sql import stored_name

# As sqlglot says it of a column that none of several tables has.
_UNKNOWN_COLUMN = re.compile(r"Unknown column: (\w+)")
# The prefix that sqlglot gives columns without a name; Spark has other ways.
_NAMELESS = "_col_"

# The ways to move a model, tried in turn. The first that holds is its strategy; those behind it are
# for the batches in which the first does not hold.
STRATEGIES: tuple[tuple[str, Callable[[Query, PlanFacts], Moving]], ...] = (
    ("signed", signed_change),
    ("running", running_totals),
    ("region", region_of),
)


def plan_uncut(flat: Flat, inputs: Inputs) -> Plan:
    names: tuple[str, ...] | None = None
    try:
        tree = parse(flat.text)
        require_deterministic(tree)
        resolved = _qualified(tree, flat, inputs)
        names = _names_of(resolved)
        by_name = {occurrence.placeholder.lower(): occurrence for occurrence in flat.occurrences}
        used = _used(resolved, flat, inputs)
        notes = _notes(resolved, by_name, inputs)
        seen: set[int] = set()
        scan_of, is_clock = _scans(by_name, inputs, seen), inputs.clocks.__contains__
        # Building a query changes its tree.
        copied = resolved.copy() if has_comma_joins(resolved) else None
        query = by_facts = build_query(resolved, scan_of, is_clock)
        if copied is not None:
            by_facts = build_query(copied, scan_of, is_clock, begins_with_facts=True)
        _check_all_seen(flat, seen)
        plan = replace(_plan(query, by_facts, flat, inputs), used=used, reads_rows_alone=True)
        if not query.limits:
            return plan if isinstance(plan.strategy, Full) else _noted(plan, notes, inputs)
        behind = plan.strategy.reasons if isinstance(plan.strategy, Full) else ()
        full = Full((*query.limits, *behind))
    except Inapplicable as error:
        is_volatile = error.reason.code == "EXPRESSION_NOT_DETERMINISTIC"
        full = Full(tuple(_with_relations(it, flat) for it in error.reasons), is_volatile)
    except Exception as error:
        # A shape the parser or the analysis does not know is recomputed, never guessed.
        full = Full((_with_relations(unknown_shape(error), flat),))
    if names is not None:
        return Plan(full, flat=flat, names=names, reads_rows_alone=True)
    names = ()
    with suppress(Exception):
        names = _names_of(qualified(parse(flat.text), query_schema(flat, inputs)))
    return Plan(full, flat=flat, names=names)


def _names_of(query: exp.Expr) -> tuple[str, ...]:
    """Return the columns that a query yields, nothing if some have no name, or one twice."""
    names = query.named_selects if isinstance(query, exp.Query) else []
    is_named = all(name and name != "*" and not name.startswith(_NAMELESS) for name in names)
    lower = tuple(name.lower() for name in names)
    return lower if is_named and len(set(lower)) == len(lower) else ()


def unknown_shape(error: Exception) -> Reason:
    """Return the reason for an error of the parser or the analysis."""
    if (unknown := _UNKNOWN_COLUMN.match(str(error))) is not None:
        return unknown_column(unknown[1], None)
    return Reason("PARSE_UNSUPPORTED", f"{type(error).__name__}: {first_lines(error)[:200]}", None)


def _with_relations(reason: Reason, flat: Flat) -> Reason:
    """Return a reason that names tables and clock, and not what the analysis calls them."""
    message = reason.message.replace(CLOCK_COLUMN, "as_of()")
    for occurrence in flat.occurrences:
        message = message.replace(occurrence.placeholder, occurrence.relation)
    return replace(reason, message=message)


def _noted(plan: Plan, notes: tuple[Reason, ...], inputs: Inputs) -> Plan:
    """Return a plan with the notes on its SQL, and on the rows that its region reads."""
    assert plan.flat is not None
    reads_frames = any(note.code == "WINDOW_UNBOUNDED" for note in notes)
    if isinstance(region := plan.strategy, Region) and not reads_frames:
        bounded = {*region.windows, *plan.parameters}
        relations = {
            occurrence.index: occurrence.relation
            for occurrence in plan.flat.occurrences
            if occurrence.index not in bounded
        }
        note = growth(region.restrictions, relations, inputs.growing, inputs.unique)
        notes = notes if note is None else (*notes, note)
    return replace(plan, notes=(*plan.notes, *notes))


def _check_all_seen(flat: Flat, seen: Collection[int]) -> None:
    """Raise Inapplicable for a table in a part of the SQL that no rule has looked at."""
    for occurrence in flat.occurrences:
        if occurrence.index not in seen:
            message = f"{occurrence.relation} is read in a place that has no rule"
            raise refusal("PARSE_UNSUPPORTED", message)


def _scans(
    by_name: Mapping[str, Occurrence], inputs: Inputs, seen: set[int]
) -> Callable[[str], Scan | None]:
    """Return a function that gives the scan of a placeholder's table, the same one each time.

    Args:
        seen: gains the tables that it is asked for.
    """

    @cache
    def scan_of(name: str) -> Scan | None:
        if (occurrence := by_name.get(name)) is None:
            return None
        seen.add(occurrence.index)
        columns = inputs.columns[occurrence.relation]
        unique = [
            frozenset(sql_of(column(stored_name(part, columns) or part)) for part in key)
            for key in inputs.unique.get(occurrence.relation, ())
        ]
        kinds = inputs.kinds.get(occurrence.relation, {})
        return Scan(occurrence.index, occurrence.relation, columns, unique, kinds)

    return lambda name: scan_of(name.lower())


def _notes(
    query: exp.Query, by_name: Mapping[str, Occurrence], inputs: Inputs
) -> tuple[Reason, ...]:
    """Return the notes on a query; none on a shape that they do not know."""
    relations = {name: occurrence.relation for name, occurrence in by_name.items()}
    with suppress(Exception):
        return notes_of(query, KnownRelations(relations, inputs.growing, inputs.clocks))
    return ()


def _qualified(tree: exp.Expr, flat: Flat, inputs: Inputs) -> exp.Query:
    """Return the tree of a query in which each column names its table.

    Raises:
        Inapplicable: for what the analysis must not reason about.
    """
    check_functions(tree)
    check_windows(tree)
    mark_written(tree)
    note_names(tree)
    aliases = group_aliases(tree)
    select_from_clock(tree, _clocks(flat, inputs))
    query = qualified(tree, query_schema(flat, inputs))
    check_group_aliases(aliases)
    if not isinstance(query, exp.Query):
        raise refusal("PARSE_UNSUPPORTED", "not a SELECT")
    even_out(query)
    check_names(query)
    check_window_notes(query, _stored_windows(flat, inputs))
    return query


def _clocks(flat: Flat, inputs: Inputs) -> dict[str, str]:
    mentions = flat.occurrences
    return {it.placeholder.lower(): it.relation for it in mentions if it.relation in inputs.clocks}


def _used(query: exp.Query, flat: Flat, inputs: Inputs) -> dict[int, frozenset[str]]:
    """Return the columns that each mention needs; those of a clock may be read of another one."""
    indices = {it.placeholder.lower(): it.index for it in flat.occurrences}
    used = used_columns(query, indices)
    clocks = {indices[name]: relation for name, relation in _clocks(flat, inputs).items()}
    of_clocks: dict[str, frozenset[str]] = {}
    for index, relation in clocks.items():
        of_clocks[relation] = of_clocks.get(relation, frozenset()) | used.get(index, frozenset())
    return {it: of_clocks[clocks[it]] if it in clocks else names for it, names in used.items()}


def _stored_windows(flat: Flat, inputs: Inputs) -> set[str]:
    """Return the stored columns that may hold windows, in lower case."""
    kinds = (inputs.kinds.get(relation, {}) for relation in flat.relations)
    return {
        name.lower()
        for columns in kinds
        for name, kind in columns.items()
        if kind.startswith("struct<start: timestamp")
    }


def query_schema(flat: Flat, inputs: Inputs) -> dict[str, object]:
    """Return the columns of each mentioned table; see `Flat.schema`.

    Raises:
        Inapplicable: INPUT_NOT_IN_DELTA.
    """
    for relation in flat.relations:
        if relation not in inputs.columns:
            raise refusal(
                "INPUT_NOT_IN_DELTA",
                f"the columns of {relation} are not known",
                suggestion="declare them in YAML, or `plan` again once the table exists",
            )
    return flat.schema(inputs.columns)


def _plan(query: Query, by_facts: Query, flat: Flat, inputs: Inputs) -> Plan:
    """Return the plan of a query; changes of facts are added up, keys are those as written."""
    parameters = {
        parameter.occurrence: parameter.compared_with_time
        for parameter in query.parameters.values()
    }
    slices, unsliced = slices_of(query)
    for occurrence in unsliced:
        parameters[occurrence] = False
    is_append_only = not slices and inputs.append_only >= set(flat.relations)
    facts = PlanFacts(is_append_only, bool(parameters), names_zone(parse(flat.text)))
    ways: list[Moving] = []
    refused: dict[str, Reason] = {}
    for name, strategy_of in STRATEGIES:
        try:
            ways.append(strategy_of(by_facts if name == "signed" else query, facts))
        except Inapplicable as error:
            refused[name] = _with_relations(error.reason, flat)
    strategy: Strategy = ways[0] if ways else Full((refused["region"],))
    ties = ties_of(query.top)
    computed = {
        name: kind
        for name in query.names
        if ties and (kind := computed_among_ties(query.top, column(name))) is not None
    }
    plan = Plan(
        strategy,
        tuple(ways[1:]),
        refused,
        flat=flat,
        names=query.names,
        parameters=parameters,
        ties=ties,
        computed_among_ties=computed,
        final_flag=_final_flag(query, flat),
    )
    if isinstance(strategy, Full):
        return plan
    notes = ties + tuple(
        Reason(
            "SCALAR_SUBQUERY_CHANGED",
            f"{_read_for_value(flat.occurrences[occurrence].relation)} is read for a value: "
            "when it changes, every row may",
            None,
            "compare it with a time, or join it",
        )
        for occurrence, compared in parameters.items()
        if not compared
    )
    return replace(
        plan,
        notes=notes,
        unique_key=_unique_key(query),
        kinds=_kinds(query),
        slices=slices,
        decided_by=strategy.keys if ties and isinstance(strategy, Region) else (),
    )


def _read_for_value(relation: str) -> str:
    return "a subquery" if is_stage_relation(relation) else relation


def _final_flag(query: Query, flat: Flat) -> FinalFlag | None:
    """Return the output column that is nothing but one comparison with a value read from a table.

    Not being NULL may be made sure of around it.
    """
    relation = query.top
    exprs: dict[str, exp.Expr] = {name: column(name) for name in query.names}
    while isinstance(relation, Renaming):
        exprs = {name: bare(relation.over_source(expr)) for name, expr in exprs.items()}
        relation = relation.source
        for name, expr in exprs.items():
            test = bare(expr.this) if isinstance(expr, exp.Coalesce) else expr
            bounds = comparisons_in(test) if isinstance(test, exp.Binary) else None
            if bounds is None or len(bounds) != 1 or isinstance(test, exp.Connector):
                continue
            (bound,) = bounds
            if bound.is_lower:
                # It says which rows are not.
                continue
            texts = {sql_of(bare(other)): name_below for name_below, other in exprs.items()}
            return FinalFlag(
                name,
                texts.get(sql_of(bare(bound.time))),
                flat.occurrences[bound.occurrence].relation,
                bound.clock_column,
            )
    return None


def _kinds(query: Query) -> dict[str, str]:
    kinds = {name: query.top.value_kind(column(name)) for name in query.names}
    typed = {name: kind for name, kind in kinds.items() if kind is not None}
    return typed if len(typed) == len(kinds) else {}


def _unique_key(query: Query) -> tuple[str, ...]:
    names = {sql_of(column(name)): name for name in query.names}
    for key in sorted(query.top.unique_keys(), key=len):
        if key and all(text in names for text in key):
            return tuple(name for text, name in names.items() if text in key)
    return ()
