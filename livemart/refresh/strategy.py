"""Which of a plan's strategies holds in a batch: signed, running totals, region, or none."""

from __future__ import annotations

import pyarrow as pa

from livemart.plan.reasons import Reason
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Signed
from livemart.refresh.inputs import FallBack
from livemart.refresh.model_run import ModelRun
from livemart.refresh.region import refresh_region
from livemart.refresh.running import NotRunning, refresh_running
from livemart.refresh.signed import NotSigned, refresh_signed


def changed_rows(run: ModelRun) -> tuple[pa.Table | None, str]:
    """Return what a batch changes in a model, by the best strategy that holds in it.

    Returns:
        Columns of the model plus `_old_count` and `_new_count`, None if nothing changes; and the
        strategy.

    Raises:
        FallBack: no strategy but a full recomputation holds.
        RefreshError: CDF_UNAVAILABLE, VERSION_GONE.
    """
    plan = run.plan
    _require_names(run)
    missing = [
        occurrence.relation
        for occurrence in (plan.flat.occurrences if plan.flat else ())
        if occurrence.relation not in run.inputs.old
    ]
    if missing and missing[0] not in run.inputs.new:
        message = f"{missing[0]} is not a Delta table of the warehouse"
        raise FallBack(Reason("INPUT_NOT_IN_DELTA", message, None))
    if missing:
        raise FallBack(Reason("CDF_UNAVAILABLE", f"{missing[0]} was rebuilt", None))
    for occurrence in run.changed_parameters():
        if not plan.parameters[occurrence]:
            relation = run.relation_of(occurrence)
            raise FallBack(
                Reason("SCALAR_SUBQUERY_CHANGED", f"the value of {relation} changed", None)
            )
    strategy = plan.strategy
    if isinstance(strategy, Signed):
        try:
            return refresh_signed(run, strategy), strategy.name
        except NotSigned:
            run.views.close()
    if isinstance(strategy, Running) and not run.views.is_large:
        try:
            return refresh_running(run, strategy), strategy.name
        except NotRunning:
            run.views.close()
    if (region := plan.region) is None:
        raise FallBack(
            Reason("KEY_NOT_IN_OUTPUT", "the change cannot be added, and no key confines it", None)
        )
    return refresh_region(run, region), region.name


def _require_names(run: ModelRun) -> None:
    """Fall back where a table has columns that the analysis does not know.

    An expression without a name gets one from Spark, and some generators make several columns.

    Raises:
        FallBack: PARSE_UNSUPPORTED.
    """
    names = {name.lower() for name in run.plan.names}
    unknown = [name for name in run.stored_schema.names if name.lower() not in names]
    if names and unknown:
        message = f"column {unknown[0]} comes from an expression without a name"
        raise FallBack(Reason("PARSE_UNSUPPORTED", message, None, "name it in the select list"))
