"""Plans a query that no strategy moves as a whole: in stages, and a last step that reads them.

Used by the planner. The rows of each stage are stored, and a strategy moves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from livemart.plan.cut import MOST_STAGES, Cut, cut_limit, with_row_count
from livemart.plan.cut_blocks import cuts_of_blocks
from livemart.plan.notes import growth_of_values
from livemart.plan.plan import Full, Inputs, Plan, QueryStage, Staged, Steps
from livemart.plan.reading.guards import check_window_notes, passes_sessions_on
from livemart.plan.reasons import Reason
from livemart.plan.relations.kinds import ARITHMETIC, has_column_type
from livemart.plan.sql.flatten import Flat, is_stage_relation
from livemart.plan.sql.parse import parse
from livemart.plan.strategies.signed import NO_COUNT_OF_ROWS, Append, Signed
from livemart.plan.uncut import plan_uncut

# How often a stage is cut into stages itself, and how many stages are tried for one query.
_DEEPEST = 3
_MOST_TRIED = 24
# Each text numbers its mentions of tables, and the parser those subqueries that have no name.
_NUMBERED = re.compile(r"__livemart_\d+__|\b_\d+(?=\.)")
# So many signs of a reason are compared: its SQL may be cut off behind them.
_COMPARED = 50


@dataclass(slots=True)
class _Attempt:
    """One way to cut a query, with the plans of its parts.

    A later attempt begins where those before it end in a full refresh: no plan of theirs changes.
    `tries_late`: it tries late cuts, too. `totals_last`: totals over stages are cut last. Where
    there is no more room, the last step reads those stages whole. `plans`: by the names that the
    parts have as stages, each with its depth. `uncut`: the plans of queries that read no stage, by
    the same names, in all attempts. `left_late`: the late cuts that were left out, by the stages
    that they need. `most_late`: how many those of one query need at most. `lacks_room`: there were
    too many stages, with totals over stages among them.
    """

    tries_late: bool = False
    totals_last: bool = False
    plans: dict[str, tuple[Plan, int]] = field(default_factory=dict)
    uncut: dict[str, Plan] = field(default_factory=dict)
    left_late: dict[frozenset[str], tuple[Cut, Inputs]] = field(default_factory=dict)
    most_late: int = 0
    lacks_room: bool = False


def plan_flat(flat: Flat, inputs: Inputs) -> Plan:
    """Return the plan of a flat text; in steps, if it can only be moved so."""
    attempt = _Attempt()
    first = plan = _plan_part(flat, inputs, 0, attempt)
    if not isinstance(plan.strategy, Full) or attempt.most_late > MOST_STAGES:
        return first
    uncut, lacks_room = attempt.uncut, attempt.lacks_room
    if any(_adds_up(*it, attempt) for it in attempt.left_late.values()):
        attempt = _Attempt(tries_late=True, uncut=uncut, lacks_room=lacks_room)
        plan = _plan_part(flat, inputs, 0, attempt)
    if isinstance(plan.strategy, Full) and attempt.lacks_room:
        attempt = _Attempt(tries_late=True, totals_last=True, uncut=uncut)
        plan = _plan_part(flat, inputs, 0, attempt)
    return first if isinstance(plan.strategy, Full) else plan


def _plan_part(flat: Flat, inputs: Inputs, depth: int, attempt: _Attempt) -> Plan:
    """Return the plan of a query, or of a stage that is within `depth` others."""
    if flat.stage_relation in attempt.plans:
        return attempt.plans[flat.stage_relation][0]
    plan = _plan_uncut(flat, inputs, attempt)
    if isinstance(plan.strategy, Full) and not plan.strategy.is_volatile and depth < _DEEPEST:
        # A shape that the cuts do not know is recomputed as a whole.
        with suppress(Exception):
            plan = (
                _in_steps(flat, plan, inputs, depth, attempt)
                or _in_steps(flat, plan, inputs, depth, attempt, may_keep_rows=False)
                or plan
            )
    attempt.plans[flat.stage_relation] = plan, depth
    return plan


def _in_steps(
    flat: Flat,
    uncut: Plan,
    inputs: Inputs,
    depth: int,
    attempt: _Attempt,
    *,
    may_keep_rows: bool = True,
) -> Plan | None:
    """Return the plan of a query that is cut into stages and a last step; None if that gains none.

    Each part that is cut is the largest that a strategy moves. The last step is moved as well, or
    it reads its stages whole, none of which may keep all rows then.

    Args:
        may_keep_rows: try cuts that gain nothing unless the last step is moved.
    """
    tree = parse(flat.text)
    check_window_notes(tree)
    if passes_sessions_on(tree):
        # In a table it would be a pair of times.
        return None
    stages: dict[str, QueryStage] = {}
    growths: dict[Reason, None] = {}
    rest, last, inputs_now = flat, uncut, inputs
    of_rows = Plan(Staged())
    keeps_rows = has_branches = has_totals = False
    while (
        next_cut := _next_cut(rest, last, inputs_now, depth, attempt, may_keep_rows=may_keep_rows)
    ) is not None:
        cut, plan = next_cut
        has_totals |= _is_total_of_stages(cut)
        stage = QueryStage(cut.stage.stage_relation, plan)
        # One that is read again has its place already, before all of its readers.
        stages_now = dict(stages)
        for step in (*plan.stages, stage):
            stages_now.setdefault(step.relation, step)
        if len(stages_now) > MOST_STAGES:
            attempt.lacks_room |= has_totals
            if attempt.totals_last and all(map(is_stage_relation, rest.relations)):
                # It is a last step as it is.
                break
            return None
        stages = stages_now
        growths.update(dict.fromkeys(_growths(cut, inputs)))
        keeps_rows |= cut.keeps_rows
        has_branches |= cut.is_branch
        of_rows = plan if cut.is_subset else Plan(Staged())
        inputs_now, rest = _with_stages(inputs_now, (*plan.stages, stage)), cut.rest
        last = plan_uncut(rest, inputs_now)
        if not isinstance(last.strategy, Full):
            break
    if not stages:
        return None
    if isinstance(last.strategy, Full) and (
        not last.reads_rows_alone
        or keeps_rows
        or (has_branches and not all(map(is_stage_relation, rest.relations)))
        or not any(_gains(it.plan) for it in stages.values())
    ):
        return None
    ties = tuple(tie for stage in stages.values() for tie in stage.plan.ties)
    reasons = uncut.strategy.reasons if isinstance(uncut.strategy, Full) else ()
    steps = Steps(flat, tuple(stages.values()), reasons)
    if not isinstance(last.strategy, Full):
        return replace(
            last, steps=steps, ties=(*last.ties, *ties), notes=(*last.notes, *ties, *growths)
        )
    is_key = set(of_rows.unique_key) <= set(uncut.names)
    return Plan(
        Staged(),
        flat=rest,
        steps=steps,
        notes=(*(of_rows.notes or ties), *growths),
        names=uncut.names,
        unique_key=of_rows.unique_key if is_key else (),
        ties=ties,
        final_flag=of_rows.final_flag,
    )


def _next_cut(
    flat: Flat,
    uncut: Plan,
    inputs: Inputs,
    depth: int,
    attempt: _Attempt,
    *,
    may_keep_rows: bool,
) -> tuple[Cut, Plan] | None:
    """Return the first cut whose stage a strategy moves, and the plan of the stage."""
    cuts = _cuts(flat, uncut, inputs, attempt)
    late = set[str]()
    for cut in _totals_of_stages_last(cuts) if attempt.totals_last else cuts:
        if (cut.keeps_rows or cut.is_branch) and not may_keep_rows:
            continue
        if len(attempt.plans) > _MOST_TRIED:
            return None
        if cut.is_late:
            needed = {
                it.stage_relation for it in (cut.stage, *(values for values, _ in cut.counted))
            }
            if not attempt.tries_late:
                late |= needed
                attempt.left_late[frozenset(needed)] = cut, inputs
                attempt.most_late = max(attempt.most_late, len(late))
                continue
        if cut.adds_up:
            plan = _plan_uncut(cut.stage, inputs, attempt)
            is_moved = _adds_up(cut, inputs, attempt)
        else:
            plan = _plan_part(cut.stage, inputs, depth + 1, attempt)
            is_moved = _gains(plan, is_value=cut.is_value and plan.reads_rows_alone)
            if cut.is_subset and plan.stages:
                # Nothing else is cut below a LIMIT.
                is_moved = not isinstance(plan.strategy, Full)
            refused = plan.refused.get("signed")
            if is_moved and refused is not None and refused.message == NO_COUNT_OF_ROWS:
                cut, plan = _counted(cut, inputs) or (cut, plan)
        if is_moved and (cut.is_subset or _decides_alone(cut, plan, inputs)):
            return cut, plan
    return None


def _decides_alone(cut: Cut, plan: Plan, inputs: Inputs) -> bool:
    """Return True if the rest of a cut makes no decision among ties that its stage makes as well.

    Spark decides once about a common table expression that is read twice (ADR-0011).
    """
    if not plan.may_decide:
        return True
    stage = QueryStage(cut.stage.stage_relation, plan)
    rest = plan_uncut(cut.rest, _with_stages(inputs, (*plan.stages, stage)))
    if not rest.may_decide:
        return True
    if plan.knows_ties and rest.knows_ties:
        return _decisions(plan).isdisjoint(_decisions(rest))
    # Decisions over the rows of different tables are different ones.
    steps = (plan, *(step.plan for step in plan.stages))
    read = {name for step in steps if step.flat is not None for name in step.flat.relations}
    return read.isdisjoint(cut.rest.relations)


def _decisions(plan: Plan) -> set[str]:
    """Return the decisions among ties of a plan, each by the begin of its SQL."""
    return {_NUMBERED.sub("", tie.message)[:_COMPARED] for tie in plan.ties}


def _counted(cut: Cut, inputs: Inputs) -> tuple[Cut, Plan] | None:
    """Return a cut whose stage counts the rows of its groups, if that makes its totals add up."""
    if (counted := with_row_count(cut)) is None:
        return None
    plan = plan_uncut(counted.stage, inputs)
    return (counted, plan) if isinstance(plan.strategy, Signed) else None


def _cuts(flat: Flat, uncut: Plan, inputs: Inputs, attempt: _Attempt) -> Iterator[Cut]:
    if (limit := cut_limit(flat, uncut.names)) is not None:
        yield limit

    def is_hopeless(part: Flat) -> bool:
        # Its cuts were tried where it was a stage: they are the same here. At the deepest none is.
        plan, depth = attempt.plans.get(part.stage_relation, (None, _DEEPEST))
        return depth < _DEEPEST and plan is not None and isinstance(plan.strategy, Full)

    yield from cuts_of_blocks(flat, inputs.columns, is_hopeless)


def _totals_of_stages_last(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """Yield the cuts that leave fewer tables to read whole before those that read stages again."""
    last = []
    for cut in cuts:
        if _is_total_of_stages(cut):
            last.append(cut)
        else:
            yield cut
    yield from last


def _growths(cut: Cut, inputs: Inputs) -> Iterator[Reason]:
    """Yield the notes on different values of growing relations without a key of their rows."""
    for values, _ in cut.counted:
        for relation in values.relations:
            if relation in inputs.growing and not inputs.unique.get(relation):
                yield growth_of_values(parse(values.text).expressions[0].unalias(), relation)


def _is_total_of_stages(cut: Cut) -> bool:
    return cut.adds_up and all(map(is_stage_relation, cut.stage.relations))


def _plan_uncut(flat: Flat, inputs: Inputs, attempt: _Attempt) -> Plan:
    """Return the plan of a query as it is written, computed once unless it reads a stage."""
    if any(map(is_stage_relation, flat.relations)):
        return plan_uncut(flat, inputs)
    if flat.stage_relation not in attempt.uncut:
        attempt.uncut[flat.stage_relation] = plan_uncut(flat, inputs)
    return attempt.uncut[flat.stage_relation]


def _adds_up(cut: Cut, inputs: Inputs, attempt: _Attempt) -> bool:
    """Return True if the stages of totals and of counted values are moved by adding up."""
    plan = _plan_uncut(cut.stage, inputs, attempt)
    return isinstance(plan.strategy, Signed) and all(
        _are_fewer(*it, inputs, attempt) for it in cut.counted
    )


def _gains(plan: Plan, *, is_value: bool = False) -> bool:
    """Return False if a stage is recomputed, or holds rows of one table: a copy of it.

    A value gains unless it can be read where it is: it is computed again for one row at most.
    """
    if isinstance(plan.strategy, Full):
        return is_value
    is_of_rows = isinstance(plan.strategy, Signed) and plan.strategy.outputs is None
    if not is_of_rows or plan.flat is None:
        return True
    values = {it for it in plan.parameters if is_stage_relation(plan.flat.occurrences[it].relation)}
    is_copy = len(plan.flat.occurrences) - len(values) == 1
    return not is_copy or (is_value and parse(plan.flat.text).args.get("where") is not None)


def _are_fewer(values: Flat, columns: Flat | None, inputs: Inputs, attempt: _Attempt) -> bool:
    """Return False if no stage can keep the values that are counted, or each row has its own."""
    plan = _plan_uncut(values, inputs, attempt)
    if not isinstance(plan.strategy, Signed) or not all(map(has_column_type, plan.kinds.values())):
        return False
    if not plan.kinds and parse(values.text).expressions[0].find(*ARITHMETIC):
        # The table does not exist yet: its columns may be times.
        return False
    return columns is None or not _plan_uncut(columns, inputs, attempt).unique_key


def _with_stages(inputs: Inputs, stages: Iterable[QueryStage]) -> Inputs:
    """Return the facts of the relations, and of the tables of stages."""
    new = {stage.relation: stage.plan for stage in stages}
    return replace(
        inputs,
        columns={**inputs.columns, **{name: plan.names for name, plan in new.items()}},
        unique={
            **inputs.unique,
            **{name: (plan.unique_key,) for name, plan in new.items() if plan.unique_key},
        },
        kinds={**inputs.kinds, **{name: plan.kinds for name, plan in new.items()}},
        append_only=inputs.append_only
        | {name for name, plan in new.items() if isinstance(plan.strategy, Append)},
    )
