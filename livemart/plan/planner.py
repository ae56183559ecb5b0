"""Plans one query: how its model is refreshed, with all that the refresh needs to know.

Used by ProjectPlans. A plan is made without Spark and never fails: SQL without a rule is recomputed
in full, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from livemart.plan.plan import VARIES, Full, Inputs, Plan
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.sql.stamps import stamps_of, without_stamps
from livemart.plan.steps import plan_flat
from livemart.plan.strategies.tie_breaks import with_ties_broken
from livemart.plan.uncut import query_schema, unknown_shape


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
        """Return the plan of a flat text on the facts of the relations that it reads."""
        flat = self.known(flat)
        facts = inputs.of(flat.relations)
        for plans in (self._plans, self._before):
            if flat in plans and plans[flat][0] == facts:
                self._plans[flat] = plans[flat]
                return plans[flat][1]
        self._plans[flat] = facts, plan_flat(flat, facts)
        return self._plans[flat][1]


def plan_query(text: str, inputs: Inputs, planned: PlannedQueries | None = None) -> Plan:
    """Return the plan of a SELECT stored as a table. Never raises: SQL without a rule is full."""
    planned = planned or PlannedQueries()
    try:
        flat = flatten(text, inputs.views)
    except Inapplicable as error:
        return Plan(Full((error.reason,)))
    except Exception as error:
        return Plan(Full((unknown_shape(error),)))
    return planned.plan(flat, inputs)


def ways_to_decide(flat: Flat, inputs: Inputs, ways: Sequence[int]) -> Iterator[Flat]:
    """Yield SQL with its ties broken in some ways; see `with_ties_broken`.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, INPUT_NOT_IN_DELTA.
    """
    return with_ties_broken(flat, query_schema(flat, inputs), ways)


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
    if (flat := whole.whole) is None:
        return replace(whole, strategy=Full((*whole.reasons, VARIES), is_volatile=True))
    try:
        flats = [flat, *(flatten(*other) for other in others)]
        if len(set(flats)) == 1:
            return whole
        names, stamps = stamps_of([run.text for run in flats], query_schema(flat, inputs))
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
        varying = Full((*reasons, VARIES), is_volatile=True)
        return Plan(varying, flat=flat, names=names)
    unstamped = [name for name in names if name not in stamps]
    plan = plan_query(without_stamps(text, unstamped), inputs, planned)
    return replace(plan, names=names, stamps=stamps, stamped=flat)
