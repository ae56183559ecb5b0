"""Compares every published model with its recomputation from the landed tables.

Used by the command `verify` and by the demo. Only the landed tables and seeds are trusted, at the
versions and the `as_of` of the newest published snapshot. A recomputed model reads the recomputed
models below it, but for columns that stamp a row with the run that wrote it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from livemart.delta.warehouse import Warehouse
from livemart.inspect.comparison import ESTIMATE_TOLERANCE, Differences, can_be_sorted, compare
from livemart.inspect.published_tables import published_snapshot
from livemart.inspect.recomputed_tables import RecomputedTables
from livemart.inspect.tied_groups import TiedGroups, TooManyRows
from livemart.inspect.ties import Verdict
from livemart.own_faults import ends_everything
from livemart.plan.approximate import approximate_columns, columns_by_order, lists_decide_rows
from livemart.plan.passed_on import passed_on_columns
from livemart.plan.plan import Full, Inputs, Plan
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat
from livemart.plan.stored_queries import StoredQuery
from livemart.project.graph import Model, Project, names_apart
from livemart.project.run_values import run_of
from livemart.run.events import ReportEvent, StepBegan
from livemart.run.input_files import has_few_rows
from livemart.run.runtime import compiling_session, open_dbt
from livemart.settings import Settings, selection_empty
from livemart.spark.executors import has_executors
from livemart.spark.model_errors import message_of
from livemart.state.places import StateFolder
from livemart.state.snapshots import Snapshot
from livemart.storage.location import StoragePlace
from livemart.storage.scratch import drop_folder, temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_CUSTOM = "of a custom materialization, whose rows dbt alone knows"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One model compared."""

    model: str
    is_equal: bool
    """Also True for a seed, a dbt snapshot or a table that hooks fill alone: these are inputs."""
    rows: int | None = None
    note: str = ""
    """Why it was not compared."""
    differences: Differences | None = None
    """None if it was not compared."""
    tied: tuple[str, ...] = ()
    """The groups whose stored rows are another right answer than the one that came out now."""

    @property
    def is_different(self) -> bool:
        """True if the stored rows are known to be wrong."""
        return self.differences is not None and not self.is_equal

    def to_json(self) -> dict[str, Any]:
        """Return the answer of the command; `is_equal` is None if the model was not compared."""
        answer = asdict(self)
        return answer if self.differences is not None else {**answer, "is_equal": None}


def exit_code(comparisons: Sequence[Comparison]) -> int:
    """Return 1 if a model differs, 3 if none does and one could not be compared, else 0."""
    if any(comparison.is_different for comparison in comparisons):
        return 1
    return 0 if all(comparison.is_equal for comparison in comparisons) else 3


def verify_snapshot(settings: Settings, report: ReportEvent) -> Iterator[Comparison]:
    """Yield a comparison per stored model of the selection, in dependency order.

    Raises:
        StateError: NOTHING_PUBLISHED.
        ConfigError: SELECTION_EMPTY.
    """
    from livemart.spark.session import open_session

    snapshot, warehouse = published_snapshot(settings.warehouse), Warehouse(settings.warehouse)
    report(StepBegan("starting Spark"))
    spark = open_session(settings, is_short=has_few_rows(warehouse))
    try:
        report(StepBegan("reading the project"))
        project, chosen = load_as_of(spark, settings, snapshot)
        listed = {key for key, model in project.models.items() if _is_listed(model)}
        if chosen is not None and chosen.isdisjoint(listed):
            raise selection_empty(settings.selection, "it names no table with rows")
        report(StepBegan("recomputing the models"))
        yield from verify_models(spark, warehouse, project, snapshot, chosen)
    finally:
        spark.stop()


def load_as_of(
    spark: SparkSession, settings: Settings, snapshot: Snapshot
) -> tuple[Project, frozenset[str] | None]:
    """Return the project, compiled on the tables of a snapshot, and the selected unique ids.

    A stream beside it, or a snapshot that is held, may have moved the tables on. SQL says of the
    run what it said in that of the snapshot.

    Args:
        spark: its catalog is empty.
        snapshot: whose versions answer what models ask.
    """

    def versions() -> dict[str, int]:
        # Which relation is a model's is known once the project is read.
        warehouse = Warehouse(settings.warehouse)
        states = {state.table_id: state for state in snapshot.models.values()}
        pinned = dict(snapshot.sources)
        for relation in warehouse.relations():
            if (state := states.get(warehouse.table_id(relation))) is not None:
                pinned[relation] = state.version
        return pinned

    dbt = open_dbt(settings, compiling_session(lambda: spark, settings.warehouse, versions))
    dbt.run = run_of(snapshot.epoch, snapshot.batch_id, snapshot.started_at)
    project = dbt.load()
    selection = settings.selection
    return project, dbt.selection(selection) if selection else None


def verify_models(
    spark: SparkSession,
    warehouse: Warehouse,
    project: Project,
    snapshot: Snapshot,
    chosen: frozenset[str] | None = None,
) -> Iterator[Comparison]:
    """Yield a comparison per stored model; see `verify_snapshot`.

    Args:
        spark: a session that can read the warehouse; nothing of its catalog is used.
        snapshot: whose versions are verified.
        chosen: unique ids to compare; all if None.
    """
    with _scratch(spark, warehouse) as scratch:
        tables = RecomputedTables(spark, warehouse, project, snapshot, scratch)
        try:
            yield from _Verification(tables).run(chosen)
        finally:
            tables.close()


@contextmanager
def _scratch(spark: SparkSession, warehouse: Warehouse) -> Iterator[StoragePlace]:
    """Yield a folder for recomputed tables, that executors of a cluster see, too."""
    if not has_executors(spark.sparkContext.master):
        with temporary_folder("verify") as folder:
            yield folder
        return
    place = StateFolder(warehouse.place).verify / uuid.uuid4().hex
    try:
        yield place
    finally:
        drop_folder(place)


def render_comparison(comparison: Comparison, *, lists_ties: bool = False) -> str:
    """Return a line, and below it up to 20 differing rows, or the groups that tie."""
    word = "equal" if comparison.is_equal else "DIFFERENT"
    if comparison.differences is None:
        word = "not compared" if comparison.is_equal else "NOT COMPARED"
    rows = "" if comparison.rows is None else f"  {comparison.rows:,} rows"
    note = f"  ({comparison.note})" if comparison.note else ""
    lines = [f"{comparison.model}  {word}{rows}{note}"]
    lines += [f"  ties: {group}" for group in comparison.tied if lists_ties]
    if comparison.differences is not None and not comparison.is_equal:
        lines += [f"  column {text}" for text in comparison.differences.columns]
        for example in comparison.differences.examples:
            values = ", ".join(f"{name}={value}" for name, value in example.row.items())
            lines.append(f"  only {example.side} ({example.count}x): {values}")
        hidden = comparison.differences.count - len(comparison.differences.examples)
        if hidden > 0:
            lines.append(f"  and {hidden:,} more")
    return "\n".join(lines)


class _Verification:
    """Compares the models of one snapshot, each with the rows that its SQL gives now."""

    def __init__(self, tables: RecomputedTables) -> None:
        self.tables = tables
        self.project, self.snapshot = tables.project, tables.snapshot
        self._names = names_apart(self.project.models)
        self._declared = {source.relation for source in self.project.sources.values()}
        self._declared |= {query.relation for query in tables.stored.values()}
        # By relation, for models that were recomputed.
        self._passed_on: dict[str, frozenset[str]] = {}
        # Sources that cannot be read, and why.
        self._unread: dict[str, str] = {}

    def run(self, chosen: frozenset[str] | None) -> Iterator[Comparison]:
        for source in self.project.sources.values():
            version = self.snapshot.sources.get(source.relation)
            if version is not None:
                self._source(source.relation, version)
        for unique_id, model in self.project.models.items():
            if not _is_listed(model):
                # The models that read it are compared.
                continue
            if (query := self.tables.stored.get(unique_id)) is not None:
                comparison = self._compared(query)
            else:
                comparison = Comparison(self._names[model.unique_id], False, note=_CUSTOM)
            if chosen is None or unique_id in chosen:
                yield comparison

    def _source(self, relation: str, version: int) -> None:
        try:
            self.tables.name_source(relation, version)
        except Exception as error:
            self._unread[relation] = _reason(error)

    def _compared(self, query: StoredQuery) -> Comparison:
        model, plan, relation = query.owner, query.plan, query.relation
        unequal = partial(Comparison, self._names[model.unique_id], False)
        state = self.snapshot.stored.get(query.unique_id)
        if (aside := self.snapshot.aside.get(query.unique_id)) is not None:
            return unequal(note=f"set aside since snapshot {aside.since}: see `status`")
        if state is None:
            return unequal(note="not in the snapshot: run `refresh`")
        try:
            session = self.tables.session(query)
        except Exception as error:
            return unequal(note=f"cannot be recomputed: its session: {_reason(error)}")
        try:
            stored = self.tables.read(session, relation, state.version)
            stored_rows = self.tables.warehouse.row_count(relation, state.version)
        except Exception as error:
            note = f"version {state.version} of {relation} cannot be read: {_reason(error)}"
            return unequal(note=note)
        if model.uncompiled:
            note = f"dbt cannot compile it: {' '.join(model.uncompiled.split())}"
            return unequal(stored_rows, note)
        if model.compiled_code is None or query.made_by != "sql":
            self.tables.name(relation, stored)
            note = "an input, not recomputed"
            if model.is_custom:
                note = _CUSTOM
            elif model.filled != "no":
                note = "filled by hooks: not compared"
            return Comparison(self._names[model.unique_id], not model.is_custom, stored_rows, note)
        if state.fingerprint != query.fingerprint:
            return unequal(stored_rows, "its SQL is not that of the snapshot: run `refresh`")
        is_volatile = isinstance(plan.strategy, Full) and plan.strategy.is_volatile
        # The SQL that varies with the run alone was compiled as of that of the snapshot.
        codes = {reason.code for reason in plan.reasons}
        is_volatile &= not plan.varies_with_run or "EXPRESSION_NOT_DETERMINISTIC" in codes
        if is_volatile:
            reason = next(reason.message for reason in plan.reasons)
            note = f"cannot be recomputed: {reason}"
            return self._uncompared(query, stored, stored_rows, note)
        try:
            flat, unsure = self.tables.flat(session, query)
        except Inapplicable as error:
            # Its names cannot be replaced, so it would read what is published, not recomputed.
            note = f"cannot be recomputed: {error.reason.message}"
            return self._uncompared(query, stored, stored_rows, note)
        missing = [name for name in flat.relations if name not in self.tables.names]
        if foreign := [name for name in missing if name not in self._declared]:
            # The log does not tell which version of such a table was read.
            verb = "is" if len(foreign) == 1 else "are"
            why = "not declared as a source"
            kinds = {model.relation: model.materialized for model in self.project.models.values()}
            if "other" in map(kinds.get, foreign):
                why = _CUSTOM
            elif not kinds.keys().isdisjoint(foreign):
                why = "read with the settings of another session"
            note = f"cannot be recomputed: {', '.join(foreign)} {verb} {why}"
            return self._uncompared(query, stored, stored_rows, note)
        if missing:
            unread = [
                f"{name} ({self._unread[name]})" if name in self._unread else name
                for name in missing
            ]
            note = f"reads what could not be recomputed: {', '.join(unread)}"
            return unequal(stored_rows, note)
        return self._judged(query, session, stored, stored_rows, flat, unsure)

    def _judged(
        self,
        query: StoredQuery,
        session: SparkSession,
        stored: DataFrame,
        stored_rows: int,
        flat: Flat,
        unsure: Sequence[str],
    ) -> Comparison:
        """Compare stored rows with those of a flat text; `unsure` as of `RecomputedTables.flat`."""
        plan, relation, name = query.plan, query.relation, self._names[query.owner.unique_id]
        unequal = partial(Comparison, name, False)
        try:
            approximate = approximate_columns(flat, self.tables.columns, self.tables.approximate)
            passed_on = passed_on_columns(flat, self.tables.columns, self._passed_on)
            recomputed = self.tables.recompute(session, relation, flat, approximate)
            self._passed_on[relation] = passed_on
            stamps = [column for column in stored.columns if column.lower() in plan.stamps]
            compared = stored.drop(*stamps)
            if stamps:
                recomputed = recomputed.select(*compared.columns).toDF(*compared.columns)
                # Nothing tells which run wrote a row but the row itself.
                self.tables.name(relation, stored)
            differences = compare(compared, recomputed, approximate, passed_on)
        except Exception as error:
            return unequal(stored_rows, f"cannot be recomputed: {_reason(error)}")
        notes = [_tolerance(differences)]
        if stamps:
            notes.append(f"not compared: {', '.join(stamps)}, the run that wrote a row")
        tied: tuple[str, ...] = ()
        verdict: Verdict = "right" if differences.is_equal else "wrong"
        if unsure and differences.count:
            verdict = "unknown"
            notes.append(f"rows differ, as they may for `{', '.join(unsure)}` in SQL of this kind")
        elif differences.count:
            if query.decides_in_stages:
                in_steps = self._judged_in_steps(query, session, stored, stored_rows)
                if in_steps is not None:
                    return in_steps
                self.tables.name(relation, recomputed)
            groups = TiedGroups(
                # Those of a stage are not known by the columns of the last step.
                plan if plan.steps is None else replace(plan, ties=(), decided_by=()),
                flat,
                compared,
                recomputed,
                partial(self.tables.run, session),
                Inputs(self.tables.columns),
                approximate,
                passed_on,
                self.tables.warehouse.partition_columns(relation),
            )
            verdict, differences, about, tied = self._judged_by_order(plan, groups, differences)
            notes += about
        if differences.count and verdict != "wrong":
            # The models that read it were computed from the stored answer.
            self.tables.name(relation, stored)
            self._passed_on.pop(relation, None)
        note = "; ".join(filter(None, notes))
        if verdict == "unknown":
            return unequal(stored_rows, note)
        if verdict == "right":
            differences = replace(differences, count=0, examples=())
        return Comparison(name, differences.is_equal, stored_rows, note, differences, tied)

    def _judged_in_steps(
        self, query: StoredQuery, session: SparkSession, stored: DataFrame, stored_rows: int
    ) -> Comparison | None:
        """Compare each stage of a model, and its rows with those of its last step over the stages.

        A stage decides once about rows that tie, and the model has these decisions. None if a stage
        cannot be compared, as after a build. None, too, if a model that need not have them differs:
        its last step is computed again over all rows.
        """
        tied: tuple[str, ...] = ()
        for unique_id in query.stages:
            stage = self._compared(self.tables.stored[unique_id].last_step)
            if stage.differences is None:
                return None
            if not stage.is_equal:
                note = f"its stage {unique_id.rpartition('__')[2]} differs"
                name = self._names[query.owner.unique_id]
                return replace(stage, model=name, rows=stored_rows, note=note)
            tied += stage.tied
        last = query.last_step
        assert last.flat is not None
        compared = self._judged(last, session, stored, stored_rows, last.flat, ())
        if not (compared.is_equal or query.plan.ways):
            return None
        note = "; ".join(filter(None, (compared.note, "compared step by step")))
        return replace(compared, note=note, tied=(*tied, *compared.tied))

    def _judged_by_order(
        self, plan: Plan, groups: TiedGroups, differences: Differences
    ) -> tuple[Verdict, Differences, list[str], tuple[str, ...]]:
        """Return whether rows that differ are another answer that the order of rows allows.

        Returns:
            The verdict; the differences, without those in the order of a list; notes; and the
            groups that tie.
        """
        by_order = columns_by_order(groups.flat, self.tables.columns)
        is_moved = plan.steps is None and not isinstance(plan.strategy, Full)
        if is_moved and not any(tie.code == "NONDETERMINISTIC_AGG" for tie in plan.ties):
            # Each list is in an order that leaves no row tied.
            by_order = {}
        kinds = {field.name: field.dataType for field in groups.stored.schema.fields}
        taken = {name: by_order[name.lower()] for name in kinds if name.lower() in by_order}
        listed = {
            name: word.separator
            for name, word in taken.items()
            if word.is_listed and can_be_sorted(kinds[name])
        }
        ordered = [name for name in taken if name not in listed]
        about_order = f"depends on the order of rows: {', '.join(ordered)}" if ordered else ""
        if taken:
            in_order = {name.lower(): separator for name, separator in listed.items()}
            groups = groups.in_any_order(in_order, ordered)
            rest = groups.differences() if groups.stored.columns else None
            if rest is None or not rest.count:
                about = about_order or f"other orders of the same elements: {', '.join(listed)}"
                return "unknown" if ordered else "right", differences, [about], ()
            differences = rest
        verdict: Verdict = "wrong"
        about_ties, tied = "", tuple[str, ...]()
        if plan.ties or not is_moved:
            verdict, about_ties, tied = _verdict_on(groups)
        if verdict == "right" and ordered:
            verdict = "unknown"
        if verdict == "wrong" and lists_decide_rows(groups.flat, self.tables.columns):
            verdict, about_order = "unknown", "the order of a list decides about rows"
        return verdict, differences, [about_ties, about_order], tied

    def _uncompared(
        self, query: StoredQuery, stored: DataFrame, rows: int, note: str
    ) -> Comparison:
        """Let models above read the stored rows of this one, as it has no others."""
        self.tables.name(query.relation, stored)
        return Comparison(self._names[query.owner.unique_id], False, rows, note)


def _reason(error: Exception) -> str:
    """Return why one table cannot be had; raise an error that all others would meet, too."""
    if ends_everything(error):
        raise error
    return message_of(error)


def _verdict_on(groups: TiedGroups) -> tuple[Verdict, str, tuple[str, ...]]:
    """Return whether rows that may tie are right, the note on them, and the groups that tie.

    No group is named unless all that differ tie.
    """
    try:
        judgement = groups.judgement()
    except Exception as error:
        # A certain difference is reported all the same.
        if not groups.plan.ties:
            return "wrong", "", ()
        reason = str(error) if isinstance(error, TooManyRows) else _reason(error)
        return "wrong", f"its tied rows cannot be determined: {reason}", ()
    tied, unknown = judgement.tied, judgement.unknown
    if judgement.wrong:
        return "wrong", f"besides, {_counted(len(tied))}, as is right" if tied else "", ()
    if unknown:
        return "unknown", f"{_counted(len(unknown))} in more ways than were tried", ()
    named = [
        ", ".join(f"{name}={value}" for name, value in zip(groups.keys, group, strict=True))
        for group in tied
    ]
    note = f"{_counted(len(tied))}: another answer is stored than came out now, as right as that"
    return "right", note if tied else "", tuple(name or "all rows" for name in named)


def _counted(groups: int) -> str:
    return "1 group of rows ties" if groups == 1 else f"{groups} groups of rows tie"


def _is_listed(model: Model) -> bool:
    """Return True for a model that has its own rows."""
    return model.is_stored or model.is_custom


def _tolerance(differences: Differences) -> str:
    parts = []
    for tolerance in sorted(set(differences.tolerances.values())):
        names = [name for name, value in differences.tolerances.items() if value == tolerance]
        shown = f"{tolerance:.0%}" if tolerance == ESTIMATE_TOLERANCE else f"{tolerance:g}"
        parts.append(f"{', '.join(names)} within {shown}")
    return "; ".join(parts)
