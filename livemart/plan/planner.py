"""Plans one query: how its model is refreshed, with all that the refresh needs to know.

Used by ProjectPlans. A plan is made without Spark and never fails: SQL without a rule is recomputed
in full, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from sqlglot import exp

from livemart.errors import first_lines
from livemart.plan.build.guards import (
    check_functions,
    check_group_aliases,
    check_names,
    check_windows,
    group_aliases,
)
from livemart.plan.build.scopes import Query, build_query
from livemart.plan.build.using import mark_written
from livemart.plan.cut import Cut, cut_limit
from livemart.plan.cut_blocks import cuts_of_blocks
from livemart.plan.notes import KnownRelations, growth, notes_of
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.relations.clock import comparisons_in
from livemart.plan.relations.relation import Renaming, Scan, bare, column
from livemart.plan.sql.determinism import require_deterministic
from livemart.plan.sql.flatten import Flat, flatten, is_stage_relation
from livemart.plan.sql.names import even_out, note_names
from livemart.plan.sql.parse import parse, qualified
from livemart.plan.sql.stamps import stamps_of, without_stamps
from livemart.plan.sql.used_columns import used_columns
from livemart.plan.sql.written import sql_of
from livemart.plan.strategies.region import Region, region_of
from livemart.plan.strategies.running import Running, running_totals
from livemart.plan.strategies.signed import Append, Signed, signed_change
from livemart.plan.strategies.slices import PlanFacts, Slice, slices_of
from livemart.plan.strategies.tie_breaks import with_ties_broken
from livemart.plan.strategies.ties import Computed, computed_among_ties, ties_of
from livemart.spark_sql import stored_name

_Fact = TypeVar("_Fact")

# The prefix that sqlglot gives columns without a name; Spark has other ways.
_NAMELESS = "_col_"
# Each stage is one more table, and one more commit in each batch that changes it.
_MOST_STAGES = 8
# How often a stage is cut into stages itself, and how many stages are tried for one query.
_DEEPEST = 3
_MOST_TRIED = 24

_VARIES = Reason(
    "VARIES_WITH_RUN",
    "rows depend on what differs in each run, such as `run_started_at`",
    None,
    "take the time of `{{ as_of() }}`, which moves with the data",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The planner's knowledge of the relations that a query reads, by `schema.identifier`.

    `growing`: the event time, if it has one, of each relation that is never done.
    """

    columns: Mapping[str, tuple[str, ...]]
    unique: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    clocks: Set[str] = frozenset()
    append_only: Set[str] = frozenset()
    growing: Mapping[str, str | None] = field(default_factory=dict)

    def of(self, relations: Collection[str]) -> Inputs:
        """Return what is known of some relations, whose views are part of the text by now."""

        def only(facts: Mapping[str, _Fact]) -> dict[str, _Fact]:
            return {relation: facts[relation] for relation in relations if relation in facts}

        return Inputs(
            only(self.columns),
            only(self.unique),
            clocks=self.clocks & set(relations),
            append_only=self.append_only & set(relations),
            growing=only(self.growing),
        )


@dataclass(frozen=True, slots=True)
class Full:
    """The model is recomputed; `is_volatile`: in every batch, as its SQL is not deterministic."""

    name: ClassVar[str] = "full"
    reasons: tuple[Reason, ...] = ()
    is_volatile: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Nothing is stored, so there is nothing to refresh."""

    name: ClassVar[str] = "view"


Moving = Append | Signed | Running | Region


@dataclass(frozen=True, slots=True)
class Staged:
    """The last step of a query that is cut is computed again, over all rows of its stages."""

    name: ClassVar[str] = "staged"


@dataclass(frozen=True, slots=True)
class QueryStage:
    """A part of a query whose rows are stored, and read by the name `relation`."""

    relation: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Steps:
    """A query that is cut.

    `whole`: its SQL as one; `stages`: each reads those before it; `uncut`: why the query as a whole
    would be recomputed.
    """

    whole: Flat
    stages: tuple[QueryStage, ...]
    uncut: tuple[Reason, ...]


Strategy = Moving | Full | View | Staged

# The ways to move a model, tried in turn. The first that holds is its strategy; those behind it are
# for the batches in which the first does not hold.
STRATEGIES: tuple[tuple[str, Callable[[Query, PlanFacts], Moving]], ...] = (
    ("signed", signed_change),
    ("running", running_totals),
    ("region", region_of),
)


@dataclass(frozen=True, slots=True)
class FinalFlag:
    """An output column that says whether a moment is before a value read from `relation`.

    `time`: the output column that holds the moment, None if none does; `watermark`: the column of
    the relation.
    """

    column: str
    time: str | None
    relation: str
    watermark: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How one model is refreshed."""

    strategy: Strategy
    others: tuple[Moving, ...] = ()
    """Strategies for the batches in which the first does not hold."""
    refused: Mapping[str, Reason] = field(default_factory=dict)
    """Why the SQL does not allow the other strategies, by name in `STRATEGIES`."""
    notes: tuple[Reason, ...] = ()
    """Why a refresh is dear, though the model is not recomputed in full."""
    flat: Flat | None = None
    """The SQL; the last step alone, if it is cut. None if it cannot be taken apart."""
    steps: Steps | None = None
    """How the SQL is cut; None if it is not."""
    names: tuple[str, ...] = ()
    unique_key: tuple[str, ...] = ()
    """Output columns that the SQL itself proves unique."""
    slices: tuple[Slice, ...] = ()
    """Rows that matter when the clock moves; see Slice."""
    parameters: Mapping[int, bool] = field(default_factory=dict)
    """Occurrences that are read for one value; True: only compared with times."""
    used: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Stored columns that the query needs, by occurrence, if fewer than all are enough."""
    ties: tuple[Reason, ...] = ()
    """Where more than one answer is right."""
    computed_among_ties: Mapping[str, Computed] = field(default_factory=dict)
    """Output columns that a function computes over rows that tie."""
    decided_by: tuple[str, ...] = ()
    """Output columns that keep together the rows that depend on one decision among ties."""
    final_flag: FinalFlag | None = None
    """The output column that says whether a window is final, if there is one."""
    stamps: Mapping[str, str] = field(default_factory=dict)
    """SQL of the columns that only stamp a row, which `plan_varying` leaves out of the plan."""
    stamped: Flat | None = None
    """The text with its stamps."""
    reads_rows_alone: bool = False
    """True if its rows depend on nothing but the rows that it reads."""
    fingerprint: str = ""

    @property
    def whole(self) -> Flat | None:
        """The SQL as one, None if it cannot be taken apart."""
        return self.flat if self.steps is None else self.steps.whole

    @property
    def stages(self) -> tuple[QueryStage, ...]:
        """The parts of the query whose rows are stored, each before those that read it."""
        return () if self.steps is None else self.steps.stages

    @property
    def varies_with_run(self) -> bool:
        """True if the run decides which rows there are, or their values."""
        return _VARIES in self.reasons

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the model is recomputed in full, or what makes a refresh of it dear."""
        return self.strategy.reasons if isinstance(self.strategy, Full) else self.notes

    @property
    def ways(self) -> tuple[Moving, ...]:
        """The strategies to try, in turn; none if the model is recomputed in full."""
        first = self.strategy
        return () if isinstance(first, Full | View | Staged) else (first, *self.others)

    def uncut(self, reasons: tuple[Reason, ...]) -> Plan:
        """Return the plan of the same query when it is recomputed as a whole."""
        full = replace(self, strategy=Full(reasons))
        if self.steps is None:
            return full
        return replace(full, flat=self.whole, steps=None, unique_key=(), notes=(), ties=(), used={})

    @property
    def region(self) -> Region | None:
        """The region of the model, which may be no more than the second choice."""
        return next((way for way in self.ways if isinstance(way, Region)), None)


class PlannedQueries:
    """The plans of the queries of one project, and of that before it.

    A project is planned again in each batch in which one of its models has other SQL.
    """

    def __init__(self, before: PlannedQueries | None = None) -> None:
        self._before = before._plans if before is not None else {}
        self._plans: dict[Flat, tuple[Inputs, Plan]] = {}
        self._known_before = before._known if before is not None else {}
        self._known: dict[Flat, Flat] = {}

    def known(self, flat: Flat) -> Flat:
        """Return the flat text that was asked for before, if there is one like it.

        The trees and plans made from that one already exist.
        """
        if flat not in self._known:
            self._known[flat] = self._known_before.get(flat, flat)
        return self._known[flat]

    def plan(self, flat: Flat, inputs: Inputs) -> Plan:
        """Return the plan of a flat text on what is known of the relations that it reads."""
        flat = self.known(flat)
        facts = inputs.of(flat.relations)
        for plans in (self._plans, self._before):
            if flat in plans and plans[flat][0] == facts:
                self._plans[flat] = plans[flat]
                return plans[flat][1]
        self._plans[flat] = facts, _plan_flat(flat, facts)
        return self._plans[flat][1]


def plan_query(text: str, inputs: Inputs, planned: PlannedQueries | None = None) -> Plan:
    """Return the plan of a SELECT stored as a table. Never raises: what has no rule is full."""
    planned = planned or PlannedQueries()
    try:
        flat = flatten(text, inputs.views)
    except Inapplicable as error:
        return Plan(Full((error.reason,)))
    except Exception as error:
        return Plan(Full((_unknown(error),)))
    return planned.plan(flat, inputs)


def _plan_flat(
    flat: Flat, inputs: Inputs, depth: int = 0, tried: dict[str, Plan] | None = None
) -> Plan:
    """Return the plan of a flat text; in steps, if it can only be moved so.

    Args:
        depth: how many stages the text is within.
        tried: the plans of parts of the same query, by the names that they have as stages.
    """
    tried = {} if tried is None else tried
    if flat.stage_relation in tried:
        return tried[flat.stage_relation]
    plan = _plan_uncut(flat, inputs)
    if isinstance(plan.strategy, Full) and not plan.strategy.is_volatile and depth < _DEEPEST:
        # A shape that the cuts do not know is recomputed as a whole.
        with suppress(Exception):
            plan = _in_steps(flat, plan, inputs, depth, tried) or plan
    tried[flat.stage_relation] = plan
    return plan


def _plan_uncut(flat: Flat, inputs: Inputs) -> Plan:
    reads_rows_alone = False
    try:
        tree = parse(flat.text)
        require_deterministic(tree)
        resolved = _qualified(tree, flat, inputs)
        reads_rows_alone = True
        query, used, notes = _query(resolved, flat, inputs)
        plan = replace(_plan(query, flat, inputs), used=used, reads_rows_alone=True)
        if not query.limits:
            return plan if isinstance(plan.strategy, Full) else _noted(plan, notes, inputs)
        behind = plan.strategy.reasons if isinstance(plan.strategy, Full) else ()
        full = Full((*query.limits, *behind))
    except Inapplicable as error:
        is_volatile = error.reason.code == "EXPRESSION_NOT_DETERMINISTIC"
        full = Full(error.reasons, is_volatile)
    except Exception as error:
        # A shape the parser or the analysis does not know is recomputed, never guessed.
        full = Full((_unknown(error),))
    names: tuple[str, ...] = ()
    with suppress(Exception):
        names = _names_of(qualified(parse(flat.text), _schema_of(flat, inputs)))
    return Plan(full, flat=flat, names=names, reads_rows_alone=reads_rows_alone)


def _in_steps(
    flat: Flat, uncut: Plan, inputs: Inputs, depth: int, tried: dict[str, Plan]
) -> Plan | None:
    """Return the plan of a query that is cut into stages and a last step; None if that gains none.

    Each part that is cut is the largest that a strategy moves. The last step is moved as well, or
    it reads its stages whole.
    """
    stages: dict[str, QueryStage] = {}
    rest, last, inputs_now = flat, uncut, inputs
    of_rows = Plan(Staged())
    while (next_cut := _next_cut(rest, last, inputs_now, depth, tried)) is not None:
        cut, plan = next_cut
        of_rows = plan if cut.is_subset else Plan(Staged())
        stage = QueryStage(cut.stage.stage_relation, plan)
        for step in (*plan.stages, stage):
            # One that is read again has its place already, before all of its readers.
            stages.setdefault(step.relation, step)
        if len(stages) > _MOST_STAGES:
            return None
        inputs_now, rest = _with_stages(inputs_now, (*plan.stages, stage)), cut.rest
        last = _plan_uncut(rest, inputs_now)
        if not isinstance(last.strategy, Full):
            break
    if not stages:
        return None
    if isinstance(last.strategy, Full) and (
        not last.reads_rows_alone
        or any(isinstance(it.plan.strategy, Full) for it in stages.values())
    ):
        return None
    ties = tuple(tie for stage in stages.values() for tie in stage.plan.ties)
    reasons = uncut.strategy.reasons if isinstance(uncut.strategy, Full) else ()
    steps = Steps(flat, tuple(stages.values()), reasons)
    if not isinstance(last.strategy, Full):
        return replace(last, steps=steps, ties=(*last.ties, *ties), notes=(*last.notes, *ties))
    is_key = set(of_rows.unique_key) <= set(uncut.names)
    return Plan(
        Staged(),
        flat=rest,
        steps=steps,
        notes=of_rows.notes or ties,
        names=uncut.names,
        unique_key=of_rows.unique_key if is_key else (),
        ties=ties,
        final_flag=of_rows.final_flag,
    )


def _next_cut(
    flat: Flat, uncut: Plan, inputs: Inputs, depth: int, tried: dict[str, Plan]
) -> tuple[Cut, Plan] | None:
    """Return the first cut whose stage a strategy moves, and the plan of the stage."""
    for cut in _cuts(flat, uncut, inputs):
        if len(tried) > _MOST_TRIED:
            return None
        if cut.adds_up:
            plan = _plan_uncut(cut.stage, inputs)
            is_moved = isinstance(plan.strategy, Signed)
        else:
            plan = _plan_flat(cut.stage, inputs, depth + 1, tried)
            is_full = isinstance(plan.strategy, Full)
            # A value is computed again for nothing worse than one row.
            is_value = cut.is_value and plan.reads_rows_alone
            is_moved = not _is_copy(plan) if not is_full else is_value
        # A value that is computed of picks among ties need not be one that a build gives.
        if is_moved and (cut.is_subset or not plan.ties):
            return cut, plan
    return None


def _cuts(flat: Flat, uncut: Plan, inputs: Inputs) -> Iterator[Cut]:
    if (limit := cut_limit(flat, uncut.names)) is not None:
        yield limit
    yield from cuts_of_blocks(flat, inputs.columns)


def _is_copy(plan: Plan) -> bool:
    """Return True for rows of one table: a stage of them would be a copy of it."""
    is_of_rows = isinstance(plan.strategy, Signed) and plan.strategy.outputs is None
    return is_of_rows and plan.flat is not None and len(plan.flat.occurrences) == 1


def _with_stages(inputs: Inputs, stages: Iterable[QueryStage]) -> Inputs:
    """Return what is known of the relations, and of the tables of stages."""
    new = {stage.relation: stage.plan for stage in stages}
    return replace(
        inputs,
        columns={**inputs.columns, **{name: plan.names for name, plan in new.items()}},
        unique={
            **inputs.unique,
            **{name: (plan.unique_key,) for name, plan in new.items() if plan.unique_key},
        },
        append_only=inputs.append_only
        | {name for name, plan in new.items() if isinstance(plan.strategy, Append)},
    )


def _names_of(query: exp.Expr) -> tuple[str, ...]:
    """Return the columns that a query yields, nothing if some have no name, or one twice."""
    names = query.named_selects if isinstance(query, exp.Query) else []
    is_named = all(name and name != "*" and not name.startswith(_NAMELESS) for name in names)
    lower = tuple(name.lower() for name in names)
    return lower if is_named and len(set(lower)) == len(lower) else ()


def ways_to_decide(flat: Flat, inputs: Inputs, ways: Sequence[int]) -> Iterator[Flat]:
    """Yield SQL with its ties broken in some ways; see `with_ties_broken`.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, INPUT_NOT_IN_DELTA.
    """
    return with_ties_broken(flat, _schema_of(flat, inputs), ways)


def plan_varying(
    text: str,
    others: Sequence[tuple[str, Mapping[str, str]]],
    inputs: Inputs,
    planned: PlannedQueries,
) -> Plan:
    """Return the plan of a SELECT that says something of the run; see `plan_query`.

    Columns that only stamp a row are left out of what is planned.

    Args:
        text: as of this run.
        others: as of other runs, each with the views of that run.
        inputs: its views are as of this run.
    """
    whole = plan_query(text, inputs, planned)
    if (flat := whole.flat) is None:
        return replace(whole, strategy=Full((*whole.reasons, _VARIES), is_volatile=True))
    try:
        flats = [flat, *(flatten(*other) for other in others)]
        if len(set(flats)) == 1:
            return whole
        names, stamps = stamps_of([run.text for run in flats], _schema_of(flat, inputs))
        if len({run.occurrences for run in flats}) > 1:
            # Another run reads other tables.
            stamps = None
    except Exception:
        # A shape the parser does not know, or SQL that is not deterministic: nothing is left out.
        names, stamps = whole.names, None
    if stamps is not None and not stamps:
        # The difference is no part of the rows: a comment, or a column that no query selects.
        return whole
    if stamps is None:
        reasons = whole.reasons if isinstance(whole.strategy, Full) else ()
        varying = Full((*reasons, _VARIES), is_volatile=True)
        return Plan(varying, flat=flat, names=names)
    unstamped = [name for name in names if name not in stamps]
    plan = plan_query(without_stamps(text, unstamped), inputs, planned)
    return replace(plan, names=names, stamps=stamps, stamped=flat)


def _unknown(error: Exception) -> Reason:
    """Return the reason for what the parser or the analysis stumbled over."""
    return Reason("PARSE_UNSUPPORTED", f"{type(error).__name__}: {first_lines(error)[:200]}", None)


def _noted(plan: Plan, notes: tuple[Reason, ...], inputs: Inputs) -> Plan:
    """Return a plan with the notes on its SQL, and on what its region reads."""
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


def _query(
    query: exp.Query, flat: Flat, inputs: Inputs
) -> tuple[Query, dict[int, frozenset[str]], tuple[Reason, ...]]:
    by_name = {occurrence.placeholder.lower(): occurrence for occurrence in flat.occurrences}
    scans: dict[str, Scan] = {}

    def scan_of(name: str) -> Scan | None:
        occurrence = by_name.get(name.lower())
        if occurrence is None:
            return None
        columns = inputs.columns[occurrence.relation]
        unique = [
            frozenset(sql_of(column(stored_name(part, columns) or part)) for part in key)
            for key in inputs.unique.get(occurrence.relation, ())
        ]
        scan = Scan(occurrence.index, occurrence.relation, columns, unique)
        return scans.setdefault(name.lower(), scan)

    used = used_columns(query, {name: occurrence.index for name, occurrence in by_name.items()})
    relations = {name: occurrence.relation for name, occurrence in by_name.items()}
    notes: tuple[Reason, ...] = ()
    # A shape that the notes do not know has none; the rules below decide about the plan.
    with suppress(Exception):
        notes = notes_of(query, KnownRelations(relations, inputs.growing, inputs.clocks))
    return build_query(query, scan_of, inputs.clocks.__contains__), used, notes


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
    query = qualified(tree, _schema_of(flat, inputs))
    check_group_aliases(aliases)
    if not isinstance(query, exp.Query):
        raise refusal("PARSE_UNSUPPORTED", "not a SELECT")
    even_out(query)
    check_names(query)
    return query


def _schema_of(flat: Flat, inputs: Inputs) -> dict[str, object]:
    """Return the columns of each mentioned table; see `Flat.schema`.

    Raises:
        Inapplicable: INPUT_NOT_IN_DELTA.
    """
    for relation in flat.relations:
        if relation not in inputs.columns:
            raise refusal("INPUT_NOT_IN_DELTA", f"the columns of {relation} are not known")
    return flat.schema(inputs.columns)


def _plan(query: Query, flat: Flat, inputs: Inputs) -> Plan:
    parameters = {
        parameter.occurrence: parameter.compared_with_time
        for parameter in query.parameters.values()
    }
    slices, unsliced = slices_of(query)
    for occurrence in unsliced:
        parameters[occurrence] = False
    is_append_only = not slices and inputs.append_only >= set(flat.relations)
    facts = PlanFacts(is_append_only, reads_values=bool(parameters))
    ways: list[Moving] = []
    refused: dict[str, Reason] = {}
    for name, strategy_of in STRATEGIES:
        try:
            ways.append(strategy_of(query, facts))
        except Inapplicable as error:
            refused[name] = error.reason
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


def _unique_key(query: Query) -> tuple[str, ...]:
    names = {sql_of(column(name)): name for name in query.names}
    for key in sorted(query.top.unique_keys(), key=len):
        if key and all(text in names for text in key):
            return tuple(name for text, name in names.items() if text in key)
    return ()
