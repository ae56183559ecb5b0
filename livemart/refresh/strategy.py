"""Moves a model by the best of its strategies that holds in a batch, or recomputes it in full.

Used by the refresh of a project; a model of whose inputs none changed is left alone. Every rule
about falling back is here: an unexpected error of a strategy, too, costs no more than a full
refresh.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import pyarrow as pa

from livemart.arrow.time_zone import TimeZone
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import PlanError, RefreshError, fault_text
from livemart.own_faults import is_own_fault
from livemart.plan.plan import Full, Staged
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.spelling import spelled
from livemart.plan.stored_queries import StoredQuery
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Signed
from livemart.project.sessions import is_utc, session_of
from livemart.refresh.context import BatchContext
from livemart.refresh.full import recompute, refresh_full
from livemart.refresh.inputs import Input, PinnedInputs
from livemart.refresh.lane import commit_change, stamped
from livemart.refresh.model_run import ModelRun
from livemart.refresh.region import refresh_region
from livemart.refresh.running import refresh_running
from livemart.refresh.signed import refresh_signed
from livemart.refresh.views import BatchViews

# Errors that a full refresh mends, with the reason that the snapshot row then names.
_RECOMPUTED = {
    "CDF_UNAVAILABLE": "CDF_UNAVAILABLE",
    "VERSION_GONE": "CDF_UNAVAILABLE",
    "TABLE_NOT_READABLE": "CDF_UNAVAILABLE",
    "STORED_ROWS_DIFFER": "CHANGED_OUTSIDE",
}


def move(
    context: BatchContext,
    query: StoredQuery,
    inputs: PinnedInputs,
    tag: Tag,
) -> tuple[Commit, str, Reason | None] | None:
    """Bring one query from the frontier to this batch, in a commit of this tag.

    Args:
        context: of the batch.
        query: one that has rows since the frontier.
        inputs: the tables of the batch.
        tag: of the commit.

    Returns:
        The commit, the name of the strategy, and why the model was recomputed, if it was; None if
        none of its inputs has changed.

    Raises:
        PlanError: POLICY_NOT_MET, if a model of policy strict would be recomputed.
    """
    plan = query.plan
    reason: Reason | None = None
    failure: Exception | None = None
    try:
        is_volatile = isinstance(plan.strategy, Full) and plan.strategy.is_volatile
        if not inputs.has_news(plan, () if is_volatile else query.reads) and not is_volatile:
            return None
        if isinstance(plan.strategy, Staged):
            tag = tag.moved_by(plan.strategy.name)
            stored = inputs.newest(query.relation)
            return refresh_full(context, query, inputs, tag, stored), plan.strategy.name, None
        if not isinstance(plan.strategy, Full):
            return (*_by_strategy(context, query, inputs, tag), None)
    except Inapplicable as error:
        reason = error.reason
    except Exception as error:
        if isinstance(error, RefreshError) and error.code in _RECOMPUTED:
            reason = Reason(_RECOMPUTED[error.code], error.message, None)
        elif isinstance(plan.strategy, Staged):
            # The same text would fail again. The whole, as it is not cut, is another one.
            raise
        elif is_own_fault(error):
            failure, fault = error, fault_text(error)
            reason = Reason("STRATEGY_FAILED", f"{plan.strategy.name} failed: {fault}", None)
        else:
            raise
    of_step = next((it for it in plan.reasons if it.code == "STRATEGY_FAILED"), None)
    reason = reason or of_step
    # Other columns of an input make another model, as other SQL does. So does a stage that is new.
    is_rebuilt = reason is not None and reason.code in ("FINGERPRINT_CHANGED", "NEW_MODEL")
    if query.policy == "strict" and reason is not None and not is_rebuilt:
        if failure is not None or of_step is not None:
            # If the model cannot be recomputed either, the fault is the SQL's own.
            recompute(context, query, inputs)
        raise PlanError(
            "POLICY_NOT_MET",
            f"{query.owner.file}: refresh: strict, but {reason.code}: {reason.message}",
            hint="follow the reason's advice, or set the policy to auto",
        )
    reason = reason or next(iter(plan.reasons), None)
    tag = tag.moved_by(Full.name, reason.code if reason else None)
    commit = refresh_full(context, query, inputs, tag, inputs.newest(query.relation))
    if failure is not None:
        # Only now: an error that the full refresh meets, too, is the SQL's own.
        context.between_batches.own_faults.report(
            "strategy_failed", failure, model=query.unique_id, strategy=plan.strategy.name
        )
    return commit, Full.name, reason


def _by_strategy(
    context: BatchContext,
    query: StoredQuery,
    inputs: PinnedInputs,
    tag: Tag,
) -> tuple[Commit, str]:
    session, between_batches = session_of(context.spark, query.session), context.between_batches
    plan = query.plan
    whole, read = inputs.resolve(plan, query.relation)
    stored = whole.without(plan.stamps) if plan.stamps else whole
    if tuple(stored.schema.names) != plan.names:
        plan = spelled(plan, stored.names.__getitem__)
    zone = TimeZone(is_utc=query.session.is_plain or is_utc(session))
    prefix = f"__{query.relation.replace('.', '__')}_{context.batch_id}"
    is_large = takes_large_lane(context, read)
    with closing(BatchViews(session, prefix, between_batches.views, is_large=is_large)) as views:
        run = ModelRun(plan, stored, read, views, between_batches.sum_limits, zone)
        change, strategy = changed_rows(run)
        if change is None:
            return Commit(stored.version), strategy
        if plan.stamps:
            change = stamped(session, plan, whole, change)
        tag = tag.moved_by(strategy)
        return commit_change(context, query.relation, plan, change, tag), strategy


def takes_large_lane(context: BatchContext, inputs: Iterable[Input]) -> bool:
    """Return True if Spark should read the slices of a model itself (ADR-0002)."""
    if context.lane != "auto":
        return context.lane == "large"
    return any(source.images.num_rows > context.small_lane_rows for source in inputs)


def changed_rows(run: ModelRun) -> tuple[pa.Table | None, str]:
    """Return the change of a model in a batch, by the best strategy that holds in it.

    Returns:
        Columns of the model plus `OLD_COUNT` and `NEW_COUNT`, None if nothing changes; and the
        strategy.

    Raises:
        Inapplicable: no strategy but a full recomputation holds.
        RefreshError: CDF_UNAVAILABLE, VERSION_GONE.
    """
    for occurrence, is_only_compared in run.plan.parameters.items():
        parameter = run.inputs[occurrence]
        if not is_only_compared and parameter.has_changed:
            message = f"the value of {parameter.new.relation} changed"
            raise refusal("SCALAR_SUBQUERY_CHANGED", message)
    reason = run.plan.refused.get("region")
    for way in (run.plan.strategy, *run.plan.others):
        try:
            match way:
                case Signed():
                    return refresh_signed(run, way), way.name
                case Running():
                    return refresh_running(run, way), way.name
                case Region():
                    return refresh_region(run, way), way.name
        except Inapplicable as error:
            run.views.close()
            last = error.reason
    raise Inapplicable(reason or last)
