"""Plans one query: how its model is refreshed, with all that the refresh needs to know.

Used by ProjectPlans. A plan is made without Spark and never fails: SQL without a rule is recomputed
in full, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
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
from livemart.plan.notes import KnownRelations, growth, notes_of
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.relations.clock import comparisons_in
from livemart.plan.relations.relation import Renaming, Scan, bare, column
from livemart.plan.sql.determinism import require_deterministic
from livemart.plan.sql.flatten import Flat, flatten
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
    """The query is cut: the rows of its stage are moved, and the last step reads all of them.

    `stage`: the plan of the stage; `uncut`: why the query as a whole is recomputed.
    """

    name: ClassVar[str] = "staged"
    cut: Cut
    stage: Plan
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
    fingerprint: str = ""

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


def _plan_flat(flat: Flat, inputs: Inputs) -> Plan:
    try:
        tree = parse(flat.text)
        require_deterministic(tree)
        query, used, notes = _query(tree, flat, inputs)
        plan = replace(_plan(query, flat, inputs), used=used)
        if not query.limits:
            return plan if isinstance(plan.strategy, Full) else _noted(plan, notes, inputs)
        behind = plan.strategy.reasons if isinstance(plan.strategy, Full) else ()
        full = Full((*query.limits, *behind))
        if not behind and (staged := _staged(flat, query, inputs)) is not None:
            return replace(staged, flat=flat, used=used)
    except Inapplicable as error:
        is_volatile = error.reason.code == "EXPRESSION_NOT_DETERMINISTIC"
        full = Full(error.reasons, is_volatile)
    except Exception as error:
        # A shape the parser or the analysis does not know is recomputed, never guessed.
        full = Full((_unknown(error),))
    names: tuple[str, ...] = ()
    with suppress(Exception):
        names = _names_of(qualified(parse(flat.text), _schema_of(flat, inputs)))
    return Plan(full, flat=flat, names=names)


def _staged(flat: Flat, query: Query, inputs: Inputs) -> Plan | None:
    """Return the plan of a query that is moved without its LIMIT; None if that gains nothing."""
    cut = cut_limit(flat, query.names)
    if cut is None:
        return None
    stage = _plan_flat(cut.stage, inputs)
    if isinstance(stage.strategy, Full):
        return None
    is_of_rows = isinstance(stage.strategy, Signed) and stage.strategy.outputs is None
    if is_of_rows and len(cut.stage.occurrences) == 1:
        # The stage would be a copy of the table that the query reads.
        return None
    is_key = stage.unique_key and not set(stage.unique_key) & set(cut.hidden)
    return Plan(
        Staged(cut, stage, query.limits),
        notes=stage.notes,
        names=query.names,
        unique_key=stage.unique_key if is_key else (),
        ties=stage.ties,
        final_flag=stage.final_flag,
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
    tree: exp.Expr, flat: Flat, inputs: Inputs
) -> tuple[Query, dict[int, frozenset[str]], tuple[Reason, ...]]:
    check_functions(tree)
    check_windows(tree)
    by_name = {occurrence.placeholder.lower(): occurrence for occurrence in flat.occurrences}
    mark_written(tree)
    note_names(tree)
    aliases = group_aliases(tree)
    query = qualified(tree, _schema_of(flat, inputs))
    check_group_aliases(aliases)
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

    if not isinstance(query, exp.Query):
        raise refusal("PARSE_UNSUPPORTED", "not a SELECT")
    even_out(query)
    check_names(query)
    used = used_columns(query, {name: occurrence.index for name, occurrence in by_name.items()})
    relations = {name: occurrence.relation for name, occurrence in by_name.items()}
    notes: tuple[Reason, ...] = ()
    # A shape that the notes do not know has none; the rules below decide about the plan.
    with suppress(Exception):
        notes = notes_of(query, KnownRelations(relations, inputs.growing, inputs.clocks))
    return build_query(query, scan_of, inputs.clocks.__contains__), used, notes


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
            f"{flat.occurrences[occurrence].relation} is read for a value: "
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
