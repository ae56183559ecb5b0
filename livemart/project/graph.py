"""Describes the project as the analyst wrote it: an immutable view of dbt's manifest.

Used by every room that asks what a source, a model or a test is; none of them sees dbt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal

from livemart.project.declared.model_page import NO_PAGE, PageSpec
from livemart.project.landing_columns import ENVELOPE_COLUMNS, LANDING_COLUMNS
from livemart.project.questions import Question
from livemart.project.session_spec import PLAIN, SessionSpec

Policy = Literal["auto", "incremental", "strict", "full"]
OnError = Literal["set_aside", "stop"]
# If rows tie: any order is right, or all of them are ordered again each time.
Ties = Literal["any", "full"]
# Whether a query that no strategy moves may be cut, and a part of it stored.
Stages = Literal["auto", "never"]
FilledBy = Literal["hooks", "sql"]
Filled = Literal["no", "partly", "wholly"]
# Where to go on when a record log lost records before they were read.
AfterLoss = Literal["stop", "earliest", "latest"]
# How records are written.
Format = Literal["json", "csv", "text", "parquet", "avro"]
# Their rows are tables of the warehouse.
STORED: frozenset[str] = frozenset({"table", "incremental", "seed", "snapshot"})
Materialized = Literal["table", "view", "ephemeral", "incremental", "seed", "snapshot", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. `data_type` is Spark DDL, or None if not declared."""

    name: str
    data_type: str | None


@dataclass(frozen=True, slots=True)
class EnvelopeOptions:
    """How a connector writes the values of a record; its own settings have the same words.

    `table`: the one whose changes are taken, None for all; `schemas`: each record says its types
    itself; `timestamp_digits`: of fractions of a second, by column, or `*` for all.
    """

    table: str | None = None
    schemas: bool = False
    decimal_handling: Literal["precise", "string", "double"] | None = None
    time_precision: (
        Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring"] | None
    ) = None
    timestamp_digits: tuple[tuple[str, int], ...] = ()
    binary_handling: Literal["bytes", "base64", "base64-url-safe", "hex"] = "bytes"

    def digits_of(self, column: str) -> int | None:
        """Return the digits of fractions of a second of a column's timestamps, if declared."""
        digits = dict(self.timestamp_digits)
        return digits.get(column, digits.get("*"))


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where records come from, and how many a micro-batch takes.

    `kind`: `files`, which `path` names, or that of a record log, opened with `options`.
    `after_loss`: what becomes of a log that lost records before they were read.
    """

    kind: str = "files"
    path: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_records_per_trigger: int | None = None
    after_loss: AfterLoss = "stop"


@dataclass(frozen=True, slots=True)
class RecordRules:
    """The rules by which a record becomes a row: sources with equal rules read it alike."""

    format: Format = "json"
    envelope: Literal["debezium"] | None = None
    """The form around the row in each record; None for none."""
    envelope_options: EnvelopeOptions = EnvelopeOptions()
    empty_is_null: bool = True
    """An empty text is no value of a column that holds no text."""
    message: tuple[tuple[str, str], ...] = ()
    """Parts of the messages of a log, each with the column that holds it."""
    avro_schema: str | None = None
    """The schema of such messages, JSON."""
    schema_registry: str | None = None
    """An address or a folder that has their schemas."""
    registry_secrets: tuple[tuple[str, str], ...] = ()
    """Its `user` and `password`, each with the environment variable that holds it."""


@dataclass(frozen=True, slots=True)
class RowRules:
    """Which rows a source takes, which of a key's it keeps, and until when they may come."""

    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    apply_as_deletes: str | None = None
    event_time_is_fixed: bool = False
    schema_drift: Literal["rescue", "evolve", "fail"] = "rescue"
    max_future: timedelta | None = timedelta(hours=1)
    horizon: timedelta | None = None
    lateness: timedelta | Literal["measured"] | None = None


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """How a source is landed: `config.meta.livemart` of a dbt source table, defaults filled in."""

    arrival: Arrival = Arrival()
    record_rules: RecordRules = RecordRules()
    row_rules: RowRules = RowRules()


# The column of `livemart.watermarks` that holds the least of all.
OVERALL_WATERMARK = "complete_to"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A dbt source table. `stream` is None if livemart does not land it (its own ones included).

    `freshness`: dbt's criteria (`warn_after`, `error_after`, `filter`); None without any.
    """

    unique_id: str
    source_name: str
    name: str
    schema: str
    identifier: str
    columns: tuple[Column, ...]
    event_time: str | None
    loaded_at_field: str | None
    stream: StreamSpec | None
    file: str
    is_clock: bool = False
    is_watermarks: bool = False
    freshness: Mapping[str, Any] | None = field(default=None, compare=False)
    disabled_seed: str | None = field(default=None, compare=False)
    """File of the seed that would fill the table if it were enabled; None if there is none."""

    @property
    def arrival(self) -> Arrival:
        """Where its records come from; asked of a table that is landed."""
        return self._landed.arrival

    @property
    def record_rules(self) -> RecordRules:
        """How its records become rows; asked of a table that is landed."""
        return self._landed.record_rules

    @property
    def row_rules(self) -> RowRules:
        """Which of its rows are taken; asked of a table that is landed."""
        return self._landed.row_rules

    @property
    def _landed(self) -> StreamSpec:
        assert self.stream is not None, self.unique_id
        return self.stream

    @property
    def is_provided(self) -> bool:
        """True for a table that livemart itself writes for the models to read."""
        return self.is_clock or self.is_watermarks

    @property
    def added_columns(self) -> tuple[str, ...]:
        """Names of the columns that landing adds to the declared ones, in order."""
        of_envelope = ENVELOPE_COLUMNS if self.record_rules.envelope else ()
        return *of_envelope, *LANDING_COLUMNS

    @property
    def relation(self) -> str:
        """`schema.identifier` in lower case: name in the catalog and path in the warehouse."""
        return f"{self.schema}.{self.identifier}".lower()

    @property
    def watermark(self) -> str:
        """The column of `livemart.watermarks` that says how complete it is."""
        return f"{self.source_name}__{self.name}".lower()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a person may use: alone, with its source, its relation."""
        return self.name, f"{self.source_name}.{self.name}", self.relation


@dataclass(frozen=True)
class Model:
    """A dbt model, seed or dbt snapshot."""

    unique_id: str
    name: str
    schema: str
    identifier: str
    materialized: Materialized
    compiled_code: str | None
    """The SELECT that dbt compiled as for a full refresh; None for seeds, and while it cannot."""
    depends_on: tuple[str, ...]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    """Columns that dbt's tests show to be unique and not null; empty without such tests."""
    partition_by: tuple[str, ...]
    is_contracted: bool
    policy: Policy
    file: str
    event_time: str | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    on_error: OnError = "set_aside"
    ties: Ties = "any"
    stages: Stages = "auto"
    filled_by: FilledBy | None = None
    """The author's word on how hooks fill the table."""
    filled: Filled = "no"
    """Whether dbt's hooks, or a materialization of the project's own, write rows beside its SQL."""
    session: SessionSpec = PLAIN
    """The settings and statements that the SQL needs besides itself."""
    uncompiled: str = ""
    """Why dbt cannot compile the model; empty if it can."""
    in_other_runs: tuple[str, ...] = ()
    """The SELECT in the fixed runs, if it differs from run to run; empty where dbt refuses it."""
    session_in_dbt: SessionSpec = PLAIN
    """The settings and statements that dbt needs before it runs the hooks of the model."""
    is_alone_in_dbt: bool = False
    """Whether dbt must run these hooks with no other model."""
    acting_hooks: tuple[str, ...] = field(default=(), compare=False)
    """The other statements of the hooks, which run in a build alone."""
    description: str = ""
    column_descriptions: Mapping[str, str] = field(default_factory=dict)
    """By the name of the column as YAML writes it; columns without one are left out."""
    raw_code: str = ""
    """The SQL as it was written, with its Jinja; empty for a seed."""
    page: PageSpec = NO_PAGE
    """How its page looks."""

    @cached_property
    def relation(self) -> str:
        """`schema.identifier` in lower case: name in the catalog and path in the warehouse."""
        return f"{self.schema}.{self.identifier}".lower()

    @property
    def is_stored(self) -> bool:
        """True if the model's rows are a table of the warehouse.

        A materialization of the project's own may make something else.
        """
        return self.materialized in STORED or (self.is_custom and self.filled != "no")

    @property
    def is_custom(self) -> bool:
        """True if a materialization of the project's own makes the model."""
        return self.materialized == "other"

    @property
    def is_of_dbt(self) -> bool:
        """True if dbt alone writes the rows, in a refresh as well, and its SQL does not say all."""
        return self.materialized == "snapshot" or self.filled != "no"


@dataclass(frozen=True, slots=True)
class DataTest:
    """A dbt data test. `attached_to` is the tested node; `kind` the name of a generic test.

    `session`: what its SQL needs besides itself; `uncompiled`: why dbt cannot compile it, if so;
    `in_other_runs`: see Model; `is_usual`: its SQL asks what the name of its kind says.
    """

    unique_id: str
    name: str
    kind: str | None
    column_name: str | None
    arguments: Mapping[str, object]
    severity: Literal["error", "warn"]
    compiled_code: str
    depends_on: tuple[str, ...]
    attached_to: str | None
    file: str
    warn_if: str = "!= 0"
    error_if: str = "!= 0"
    fail_calc: str = "count(*)"
    limit: int | None = None
    session: SessionSpec = PLAIN
    uncompiled: str = ""
    in_other_runs: tuple[str, ...] = ()
    is_usual: bool = True


@dataclass(frozen=True, slots=True)
class Exposure:
    """A dbt exposure: a reader of some models. `type` is dbt's word, such as `dashboard`."""

    unique_id: str
    name: str
    depends_on: tuple[str, ...]
    type: str = ""
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Project:
    """All nodes by unique id; `models` (seeds included) in dependency order."""

    name: str
    directory: str
    target_schema: str
    sources: Mapping[str, SourceTable]
    models: Mapping[str, Model]
    tests: Mapping[str, DataTest]
    exposures: Mapping[str, Exposure]
    session: SessionSpec = PLAIN
    """The settings and statements that all SQL needs, by the profile and by on-run-start."""
    acting_hooks: tuple[str, ...] = field(default=(), compare=False)
    """The other statements of on-run-start, which run in a build alone."""
    questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict, compare=False)
    """The questions that nodes asked the warehouse while they were compiled."""
    functions: tuple[str, ...] = ()
    """The statements that make functions for all sessions."""

    def node(self, unique_id: str) -> Model | DataTest:
        """Return a model or a test."""
        return self.models.get(unique_id) or self.tests[unique_id]

    def seed_of_another_schema(self, source: SourceTable) -> Model | None:
        """Return the seed whose table has the name of a source, but is in another schema."""
        seeds = (model for model in self.models.values() if model.materialized == "seed")
        name = source.identifier.lower()
        return next((seed for seed in seeds if seed.identifier.lower() == name), None)

    def asking(self, unique_id: str) -> list[str]:
        """Return the `parts` of a node that asked the warehouse."""
        return [part for part in self.parts(unique_id) if part in self.questions]

    def parts(self, unique_id: str) -> list[str]:
        """Return the nodes whose SQL is part of a node's, inputs first.

        They are the views that it reads, directly or through others, and the node itself.
        """
        parts: dict[str, None] = {}

        def add(part: str) -> None:
            for parent in self.node(part).depends_on:
                model = self.models.get(parent)
                if model is not None and not model.is_stored and parent not in parts:
                    add(parent)
            parts[part] = None

        add(unique_id)
        return list(parts)

    def inlined(self, unique_ids: Set[str] | None = None) -> set[str]:
        """Return the ephemeral models whose SQL is part of a node's, directly or not.

        Args:
            unique_ids: of the nodes; None is every node that is not ephemeral itself.
        """
        inlined: set[str] = set()
        nodes: list[Model | DataTest] = [*self.models.values(), *self.tests.values()]
        for node in reversed(nodes):
            is_ephemeral = isinstance(node, Model) and node.materialized == "ephemeral"
            is_asked = not is_ephemeral if unique_ids is None else node.unique_id in unique_ids
            if is_asked or node.unique_id in inlined:
                parents = (self.models[key] for key in node.depends_on if key in self.models)
                inlined.update(it.unique_id for it in parents if it.materialized == "ephemeral")
        return inlined

    def with_views(self, unique_ids: Set[str]) -> set[str]:
        """Return these models and the views that read them, directly or through other views."""
        models: set[str] = set()
        for unique_id, model in self.models.items():
            reads = not model.is_stored and not models.isdisjoint(model.depends_on)
            if reads or unique_id in unique_ids:
                models.add(unique_id)
        return models

    def differs_with_run(self, unique_id: str) -> bool:
        """Return True if SQL that is part of a node's differs from run to run."""
        return any(self.node(part).in_other_runs for part in self.parts(unique_id))

    @property
    def sessions(self) -> set[SessionSpec]:
        """The sessions in which SQL of this project is run."""
        specs = {test.session for test in self.tests.values()}
        for model in self.models.values():
            specs |= {model.session, model.session.of_a_view}
        return specs

    @property
    def clock(self) -> SourceTable | None:
        """The source table `livemart.clock`, if the project declares it."""
        return next((source for source in self.sources.values() if source.is_clock), None)

    @property
    def watermarks(self) -> SourceTable | None:
        """The source table `livemart.watermarks`, if the project reads it."""
        return next((source for source in self.sources.values() if source.is_watermarks), None)

    @property
    def with_lateness(self) -> list[SourceTable]:
        """The sources that say how late their records may come, in the order of their names."""
        sources = sorted(self.sources.values(), key=lambda source: source.watermark)
        return [it for it in sources if it.stream and it.stream.row_rules.lateness is not None]


def short_name(unique_id: str) -> str:
    """Return the short name of a node: a version with its number, a test without the hash.

    >>> short_name("model.livemart.panes"), short_name("test.livemart.unique_panes.1a2b3c")
    ('panes', 'unique_panes')
    >>> short_name("model.shop.totals.v2")
    'totals.v2'
    """
    kind, _, name = unique_id.split(".", 2) if unique_id.count(".") > 1 else ("", "", unique_id)
    return name.rpartition(".")[0] or name if kind == "test" else name


def names_apart(unique_ids: Iterable[str]) -> dict[str, str]:
    """Return the short name of each node, behind its package where two nodes share it.

    >>> list(names_apart(["model.shop.totals", "model.crm.totals", "model.shop.days"]).values())
    ['shop.totals', 'crm.totals', 'days']
    """
    names = {unique_id: short_name(unique_id) for unique_id in unique_ids}
    counts = Counter(names.values())
    return {
        unique_id: unique_id.partition(".")[2] if counts[name] > 1 else name
        for unique_id, name in names.items()
    }
