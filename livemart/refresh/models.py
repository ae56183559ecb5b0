"""Refreshes every model of a project in one batch, in dependency order.

Used by run for each micro-batch that has something new. A model whose inputs have not changed keeps
its state, and nothing is written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from livemart.delta.tags import READ, REASON, ROWS_CHANGED, STRATEGY, Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import LivemartError, PlanError, RefreshError, fault_text
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.own_faults import is_own_fault
from livemart.plan.plan import Full, Staged
from livemart.plan.reasons import WRITTEN_BY_DBT, Inapplicable
from livemart.plan.stored_queries import StoredQuery
from livemart.project.sessions import session_of
from livemart.refresh.context import BatchContext, SqlChanged
from livemart.refresh.dependency_order import in_dependency_order
from livemart.refresh.frontier import Broken, Loaded, Rebuild, Refresh, Start, Untouched, set_aside
from livemart.refresh.full import refresh_full
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.strategy import move
from livemart.spark.model_errors import ModelFailedError, model_failed
from livemart.state.failures import ModelFailures
from livemart.state.snapshots import ModelState, SetAside, Snapshot


@dataclass(frozen=True, slots=True)
class RefreshedModels:
    """The state of every stored model at a batch, by unique id, and which were set aside.

    A model that is set aside has the state of the frontier; none if it never had one.
    """

    states: dict[str, ModelState] = field(default_factory=dict)
    set_aside: dict[str, SetAside] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndedModel:
    """A model that this batch has ended with, and all that decides about it.

    `read`: the versions of what it read, by relation; a batch that begins again need not look at it
    unless one of these is another one.
    """

    fingerprint: str
    start: Start
    read: Mapping[str, int]
    state: ModelState


_WRITTEN_BESIDE = ("CHANGED_OUTSIDE", *WRITTEN_BY_DBT)
BeforeModel = Callable[[str, PinnedInputs], None]


class Report(Protocol):
    """Is called with the progress of a model: a word, and at its end its state."""

    def __call__(self, unique_id: str, word: str, state: ModelState | None = None, /) -> None: ...


def refresh_models(
    context: BatchContext,
    stored: Mapping[str, StoredQuery],
    inputs: PinnedInputs,
    frontier: Snapshot,
    starts: Mapping[str, Start],
    *,
    report: Report,
    before_model: BeforeModel,
    attempts: int,
    runs_again: bool,
    ended: dict[str, EndedModel] | None = None,
) -> RefreshedModels:
    """Refresh all stored models of a project in one batch.

    A model of which `before_model` says that it has other SQL waits, as do its readers, until all
    others have ended: then the batch begins again. A model that cannot be computed ends the batch
    without a row of the log. When it has failed often enough it is set aside instead, with all that
    read it, and the others go on.

    Args:
        context: session, tables and identity of the batch.
        stored: the queries of the project, by unique id, in dependency order.
        inputs: what every change set starts from; each model adds its version as it ends.
        frontier: the row before.
        starts: of these queries, by unique id.
        report: called when the refresh of a model starts and ends, from several threads.
        before_model: called once all that a model reads is refreshed; may raise SqlChanged. It lets
            dbt make a table that it alone writes, or ModelFailedError.
        attempts: how often a model may fail in a row before it is set aside.
        runs_again: the batch is run again by itself meanwhile.
        ended: what this batch has ended with before it began again, by unique id; it is added to.

    Raises:
        SqlChanged: a model, or more, has other SQL by now.
        RefreshError: a model could not be refreshed.
        PlanError: POLICY_NOT_MET, if a model of policy strict would fall back to a full refresh.
    """
    ended = {} if ended is None else ended
    refresher = _Refresher(context, stored, inputs, frontier, starts, report, before_model, ended)
    done = RefreshedModels(set_aside=refresher.set_aside)
    failures: list[ModelFailedError] = []

    parents = {unique_id: query.parents for unique_id, query in stored.items()}
    # A model that took long in the last batch is likely to in this one.
    took_ms = context.between_batches.took_ms
    costs = {unique_id: state.took_ms for unique_id, state in inputs.states.items()} | took_ms
    for unique_id, end in in_dependency_order(parents, refresher.refresh, context.threads, costs):
        if end is None:
            continue
        if isinstance(end, ModelState):
            done.states[unique_id] = end
            if end.took_ms:
                took_ms[unique_id] = end.took_ms
        else:
            if isinstance(end, ModelFailedError):
                failures.append(end)
                end = refresher.aside(unique_id, cause=unique_id, message=end.message)
            done.set_aside[unique_id] = end
            if (before := inputs.states.get(unique_id)) is not None:
                done.states[unique_id] = carried(before)
        if (state := done.states.get(unique_id)) is not None:
            inputs.new[stored[unique_id].relation] = state.version
    if refresher.waiting:
        raise SqlChanged(*refresher.waiting)
    if failure := refresher.tried_again(failures, attempts):
        failure.is_retriable = runs_again
        raise failure
    context.between_batches.views.keep(inputs.new)
    return done


@dataclass(frozen=True, slots=True)
class _Refresher:
    """Decides for one model at a time whether to refresh it, and records the result.

    Several threads at once.
    """

    context: BatchContext
    stored: Mapping[str, StoredQuery]
    inputs: PinnedInputs
    frontier: Snapshot
    starts: Mapping[str, Start]
    report: Report
    before_model: BeforeModel
    ended: dict[str, EndedModel]
    set_aside: dict[str, SetAside] = field(default_factory=dict)
    # For the batch to begin again: their SQL, or that of an input, is another one.
    waiting: dict[str, None] = field(default_factory=dict)

    def refresh(self, unique_id: str) -> ModelState | SetAside | ModelFailedError | None:
        """Return where a model is after this batch, or why it is nowhere; None if it waits."""
        query, start = self.stored[unique_id], self.starts[unique_id]
        parents = query.parents
        if failed := [stage for stage in query.stages if stage in self.set_aside]:
            query, parents = query.uncut(failed[0]), parents - set(query.stages)
        match start:
            case Loaded():
                return start.state
            case Untouched(aside):
                self.report(unique_id, "waiting")
                return aside
        if not parents.isdisjoint(self.waiting):
            self.waiting[unique_id] = None
            return None
        is_made = self._is_made(query, start)
        if (waits := self._waits_for(unique_id, parents if is_made else ())) is not None:
            self.report(unique_id, "waiting")
            return waits
        if isinstance(start, Broken):
            return self._failed(query, ModelFailedError(query.owner, start.message))
        before = self.inputs.states.get(unique_id)
        try:
            if is_made:
                self.before_model(unique_id, self.inputs)
            self.report(unique_id, "started")
            failpoint(f"refresh.before_model.{query.owner.name}")
            if query.made_by == "dbt" and (isinstance(start, Rebuild) or is_made):
                state = self._taken_over(query, start, before)
            elif not is_made and before is not None:
                state = carried(before)
            else:
                state = self._in_steps(query, start, before)
        except ModelFailedError as failure:
            return self._failed(query, failure)
        except SqlChanged:
            self.waiting[unique_id] = None
            return None
        except (RefreshError, PlanError):
            raise
        except Exception as error:
            if not is_own_fault(error):
                raise
            spark = self.context.spark
            unforeseen = model_failed(lambda it: session_of(spark, it.session), query.owner, error)
            unforeseen.__cause__ = error
            return self._failed(query, unforeseen)
        failpoint(f"refresh.after_model.{query.owner.name}")
        self.report(unique_id, state.strategy if state.rows_changed else "unchanged", state)
        return state

    def _is_made(self, query: StoredQuery, start: Start) -> bool:
        """Return True if the batch makes rows of a query, be it by dbt."""
        if query.made_by == "seed":
            # They are a file of the project.
            return False
        if query.made_by == "sql" or isinstance(start, Broken):
            return True
        # A table that has been written beside livemart exists.
        is_there = self.context.warehouse.exists(query.relation)
        if isinstance(start, Rebuild) and not (start.code in _WRITTEN_BESIDE and is_there):
            return True
        return query.owner.filled == "partly" and self._has_news(query)

    def _has_news(self, query: StoredQuery) -> bool:
        """Return True if something may be new in the tables that a query reads."""
        try:
            return self.inputs.has_news(query.plan, query.reads)
        except Inapplicable:
            return True

    def _taken_over(
        self, query: StoredQuery, start: Start, before: ModelState | None
    ) -> ModelState:
        """Return the state of a query whose rows dbt alone writes: its table as it is."""
        warehouse = self.context.warehouse
        commit = Commit(warehouse.version(query.relation))
        generation = before.generation if before is not None else 0
        reason = query.reason_of_dbt
        if isinstance(start, Rebuild):
            generation, reason = start.generation, start.code
        return state_after(warehouse, query, commit, Full.name, reason, 0, generation)

    def _failed(self, query: StoredQuery, failure: ModelFailedError) -> ModelFailedError | SetAside:
        """Return the failure of a model, unless it is to stop everything.

        A stage that fails costs its owner no more than a full refresh.
        """
        if query.is_stage:
            self.context.between_batches.own_faults.report(
                "strategy_failed", failure, model=query.owner.unique_id, strategy=Staged.name
            )
            return self.aside(query.unique_id, query.unique_id, failure.message)
        self.report(query.unique_id, "failed")
        if query.owner.on_error == "stop":
            raise failure
        return failure

    def _waits_for(self, unique_id: str, parents: Iterable[str]) -> SetAside | None:
        """Return the model as set aside with the first model that it reads and that is."""
        for parent in sorted(parents):
            if (aside := self.set_aside.get(parent)) is not None:
                return self.aside(unique_id, aside.cause, aside.message)
        return None

    def aside(self, unique_id: str, cause: str, message: str) -> SetAside:
        """Return a model as this batch sets it aside."""
        fingerprint = self.stored[unique_id].fingerprint
        return set_aside(self.frontier, unique_id, fingerprint, cause, message)

    def tried_again(
        self, failures: list[ModelFailedError], attempts: int
    ) -> ModelFailedError | None:
        """Return the failure that ends the batch; None once all have failed often enough."""
        counts = ModelFailures(self.context.warehouse.place)
        counts.keep_only({failure.unique_id for failure in failures})
        again: list[ModelFailedError] = []
        for failure in failures:
            fingerprint = self.stored[failure.unique_id].fingerprint
            before = self.frontier.aside.get(failure.unique_id)
            if before is not None and not before.is_left_out and before.fingerprint == fingerprint:
                continue
            if counts.count(failure.unique_id, fingerprint) < attempts:
                again.append(failure)
        if again:
            return again[0]
        counts.keep_only(())
        for failure in failures:
            structlog.get_logger().error(
                "model_set_aside",
                batch_id=self.context.batch_id,
                model=failure.unique_id,
                error=failure.message,
                hint="correct it: it returns by itself, and the models that read it with it",
            )
        return None

    def _in_steps(
        self, query: StoredQuery, start: Refresh | Rebuild, before: ModelState | None
    ) -> ModelState:
        """Return the state of a query; if its last step fails, of the whole as it is not cut."""
        try:
            return self._once(query, start, before)
        except Exception as error:
            is_known = isinstance(error, LivemartError) or not is_own_fault(error)
            if is_known or not query.stages:
                raise
            fault = fault_text(error)
            state = self._once(query.uncut(query.unique_id, fault), start, before)
            if query.decides_in_stages:
                # The whole may have decided otherwise. So no change of a stage leads on from here,
                # and the next batch computes both.
                for stage in query.stages:
                    self.set_aside[stage] = self.aside(stage, stage, fault)
            # Only now: an error that the whole meets, too, is the SQL's own.
            self.context.between_batches.own_faults.report(
                "strategy_failed", error, model=query.unique_id, strategy=Staged.name
            )
            return state

    def _once(
        self, query: StoredQuery, start: Refresh | Rebuild, before: ModelState | None
    ) -> ModelState:
        """Return the state of a query, which this batch may have ended with before it began again.

        Undeclared inputs may have changed unseen meanwhile, so its readers are refreshed again.
        """
        read = {relation: self.inputs.new.get(relation) for relation in query.reads}
        versions = {relation: version for relation, version in read.items() if version is not None}
        ended = self.ended.get(query.unique_id)
        if ended is not None and ended == EndedModel(
            query.fingerprint, start, versions, ended.state
        ):
            return ended.state
        state = self._state(query, start, before, versions)
        if len(versions) == len(read):
            self.ended[query.unique_id] = EndedModel(query.fingerprint, start, versions, state)
        return state

    def _state(
        self,
        query: StoredQuery,
        start: Refresh | Rebuild,
        before: ModelState | None,
        read: Mapping[str, int],
    ) -> ModelState:
        """Return the state of a query; `read`: the versions that this batch reads, by relation."""
        started = time.perf_counter()
        context, warehouse, relation = self.context, self.context.warehouse, query.relation
        rebuild = start if isinstance(start, Rebuild) else None
        generation = rebuild.generation if rebuild else (before.generation if before else 0)
        version = warehouse.version(relation) if warehouse.exists(relation) else -1
        tag = self._tag(query, generation, read)
        is_done, is_behind = version >= 0 and warehouse.is_tagged(relation, tag), False
        if is_done:
            # The last of several attempts counts.
            while warehouse.is_tagged(relation, self._tag(query, generation + 1, read)):
                generation += 1
            tag = self._tag(query, generation, read)
            commit, said = committed_before(warehouse, relation, tag)
            # The clock, a table of others or the SQL of an input may have moved since.
            is_behind = said.get(READ, tag.metadata[READ]) != tag.metadata[READ]
        if is_done and not is_behind:
            strategy, code = said.get(STRATEGY, query.plan.strategy.name), said.get(REASON)
        elif rebuild is not None or before is None or is_behind:
            strategy = Full.name
            code = rebuild.code if rebuild else "CDF_UNAVAILABLE" if is_behind else None
            if is_behind:
                # Under the same one Delta would skip it.
                generation += 1
                tag = self._tag(query, generation, read)
            tag = tag.moved_by(strategy, code)
            # A rebuild stamps every row with new values, also those that stay as they are.
            stored = None if query.plan.stamps else self.inputs.newest(relation)
            commit = refresh_full(context, query, self.inputs, tag, stored)
        else:
            moved = move(context, query, self.inputs, tag)
            if moved is None:
                return carried(before)
            commit, strategy, reason = moved
            code = reason.code if reason is not None else None
        took_ms = ms_since(started)
        # A table that was replaced by no rows at all has changed, too.
        has_written = commit.skipped or commit.version > version
        if before is not None and rebuild is None and not (has_written or is_behind):
            return carried(before, took_ms)
        return state_after(warehouse, query, commit, strategy, code, took_ms, generation)

    def _tag(self, query: StoredQuery, generation: int, read: Mapping[str, int]) -> Tag:
        tag = self.context.tags.rows(query.relation, generation, query.fingerprint)
        return tag.with_metadata({READ: json.dumps(read, sort_keys=True)})


def fill_stages(
    context: BatchContext,
    stages: Iterable[StoredQuery],
    inputs: PinnedInputs,
    before: Mapping[str, ModelState],
    begins: Callable[[str, int], None],
) -> dict[str, ModelState]:
    """Compute the stages of models that a build has made; return their states, by unique id.

    One that fails is left to the next refresh.

    Args:
        context: of the build.
        stages: of models that are built.
        inputs: the versions that these models have read.
        before: the states of the newest snapshot, by unique id.
        begins: called before each stage with the unique id of its model, and its number from 1.
    """
    states, reason = {}, "BUILD"
    for number, query in enumerate(stages, start=1):
        begins(query.owner.unique_id, number)
        started = time.perf_counter()
        state = before.get(query.unique_id)
        generation = state.generation + 1 if state is not None else 0
        tag = context.tags.rows(query.relation, generation, query.fingerprint)
        stored = inputs.newest(query.relation)
        try:
            commit = refresh_full(context, query, inputs, tag.moved_by(Full.name, reason), stored)
        except Exception as error:
            if not is_own_fault(error):
                raise
            context.between_batches.own_faults.report(
                "strategy_failed", error, model=query.owner.unique_id, strategy=Staged.name
            )
            continue
        states[query.unique_id] = state_after(
            context.warehouse, query, commit, Full.name, reason, ms_since(started), generation
        )
        # Another stage may read it.
        inputs.new[query.relation] = commit.version
    return states


def committed_before(
    warehouse: Warehouse, relation: str, tag: Tag
) -> tuple[Commit, Mapping[str, str]]:
    """Return the commit of an earlier attempt at a batch, with its metadata."""
    entry = warehouse.tagged_entry(relation, tag)
    said: Mapping[str, str] = {} if entry is None else entry.metadata
    rows = int(said.get(ROWS_CHANGED, 0))
    if entry is not None and STRATEGY in said and ROWS_CHANGED not in said:
        rows = warehouse.row_count(relation, entry.version)
    return Commit(warehouse.version(relation), rows, skipped=True), said


def state_after(
    warehouse: Warehouse,
    query: StoredQuery,
    commit: Commit,
    strategy: str,
    reason: str | None,
    took_ms: int,
    generation: int,
) -> ModelState:
    """Return the state of a query whose rows a commit has brought up to date."""
    table_id, fingerprint = warehouse.table_id(query.relation), query.fingerprint
    version, rows = commit.version, commit.rows_changed
    return ModelState(version, fingerprint, strategy, reason, rows, took_ms, generation, table_id)


def carried(before: ModelState, took_ms: int = 0) -> ModelState:
    """Return the state of a model without net change: the same table version, nothing written."""
    return replace(before, strategy="unchanged", reason=None, rows_changed=0, took_ms=took_ms)
