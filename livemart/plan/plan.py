"""Describes how a model is refreshed: the plan of its query, and the facts behind it.

Used by every step that reads a plan. The planner alone makes one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from livemart.plan.reasons import Reason
from livemart.plan.sql.flatten import Flat
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Append, Signed
from livemart.plan.strategies.slices import Slice
from livemart.plan.strategies.ties import Computed, may_decide

_Fact = TypeVar("_Fact")

VARIES = Reason(
    "VARIES_WITH_RUN",
    "rows depend on what differs in each run, such as `run_started_at`",
    None,
    "take the time of `{{ as_of() }}`, which moves with the data",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The planner's knowledge of the relations that a query reads, by `schema.identifier`.

    `growing`: the event time, if it has one, of each relation that is never done. `kinds`: of the
    columns of tables that exist, see `key_kind`.
    """

    columns: Mapping[str, tuple[str, ...]]
    unique: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    clocks: Set[str] = frozenset()
    append_only: Set[str] = frozenset()
    growing: Mapping[str, str | None] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, relations: Collection[str]) -> Inputs:
        """Return the facts of some relations, whose views are part of the text by now."""

        def only(facts: Mapping[str, _Fact]) -> dict[str, _Fact]:
            return {relation: facts[relation] for relation in relations if relation in facts}

        return Inputs(
            only(self.columns),
            only(self.unique),
            clocks=self.clocks & set(relations),
            append_only=self.append_only & set(relations),
            growing=only(self.growing),
            kinds=only(self.kinds),
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
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of each output column; none before all tables exist."""
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
    def knows_ties(self) -> bool:
        """True if `ties` names all places where the order of rows decides."""
        return bool(self.ways) and all(stage.plan.knows_ties for stage in self.stages)

    @property
    def may_decide(self) -> bool:
        """True if its rows may depend on a decision among rows that tie, be it unknown."""
        if self.ties or any(stage.plan.may_decide for stage in self.stages):
            return True
        return not self.ways and (self.flat is None or may_decide(self.flat.text))

    @property
    def last_step(self) -> Plan:
        """The plan of the last step alone, over the tables of its stages."""
        of_stages = [tie for stage in self.stages for tie in stage.plan.ties]
        ties = tuple(tie for tie in self.ties if tie not in of_stages)
        return replace(self, steps=None, ties=ties)

    @property
    def varies_with_run(self) -> bool:
        """True if the run decides which rows there are, or their values."""
        return VARIES in self.reasons

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the model is recomputed in full, or why a refresh of it is expensive."""
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
