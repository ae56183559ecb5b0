"""Plans a project: each of its queries on the facts of the relations that it reads.

Used by every step that asks for a plan; nothing else calls the planner. Plans last until a table
has other columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from livemart.errors import PlanError
from livemart.plan.places import ReasonPlace, reason_place
from livemart.plan.plan import Full, Inputs, Plan, Steps, View
from livemart.plan.planner import PlannedQueries, plan_query, plan_varying
from livemart.plan.reasons import Inapplicable, Reason
from livemart.plan.sql.determinism import is_unsteady
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.sql.functions import AGGREGATE_FUNCTIONS, BUILT_IN_FUNCTIONS
from livemart.plan.sql.used_columns import open_names
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.plan.strategies.signed import Append, Signed
from livemart.project.graph import OVERALL_WATERMARK, DataTest, Model, Project
from livemart.project.session_spec import PLAIN, SessionSpec

# Between the hash of the SQL and that of its session.
_SESSION = "."
# The fixed runs, as `in_other_runs` numbers them.
FIXED_RUNS = (0, 1)
_HISTORY_COLUMNS = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")

# By name, the `key_kind` of each column.
ColumnKinds = Mapping[str, str]
ColumnsOf = Callable[[str], ColumnKinds | None]


@dataclass(frozen=True, slots=True)
class RowQuery:
    """SQL whose every row comes from one row of one table: of `signed`, the anchors."""

    flat: Flat
    signed: Signed


class ProjectPlans:
    """The plans of one project's models and tests, on the columns that its tables have."""

    def __init__(
        self,
        project: Project,
        stored_columns: ColumnsOf = lambda relation: None,
        before: ProjectPlans | None = None,
    ) -> None:
        """Plan all models; tests are planned when they are first asked for.

        Args:
            stored_columns: the columns of a table that exists and their kinds, None otherwise;
                then the declared ones and those that the SQL itself yields are used.
            before: plans of the same project, from which those of unchanged SQL are taken.
        """
        self._planned_queries: PlannedQueries | None = (
            before._planned_queries if before is not None else None
        )
        self.project = project
        # By unique id, in dependency order.
        self.models: Mapping[str, Plan] = {}
        # Those of the models that have a table, in the same order.
        self.stored: Mapping[str, StoredQuery] = {}
        self._stored_columns = stored_columns
        # Those of the tables that exist, by relation, on which the models are planned.
        self.columns: Mapping[str, ColumnKinds] | None = None
        self._inputs = Inputs({})
        self._flats: dict[str, Flat | None] = {}
        self._by_text: dict[tuple[str, SessionSpec], Plan] = {}
        self.renew()

    def __getstate__(self) -> dict[str, object]:
        """Return all but the way to the tables, which belongs to a process."""
        return {name: value for name, value in vars(self).items() if name != "_stored_columns"}

    def resumed(self, stored_columns: ColumnsOf) -> ProjectPlans:
        """Return these plans, made by another process, planned again where columns are others."""
        self._stored_columns = stored_columns
        self.renew()
        return self

    def renew(self) -> None:
        """Plan again if a table has other columns by now."""
        project = self.project
        relations = [source.relation for source in project.sources.values()]
        relations += [model.relation for model in project.models.values() if model.is_stored]
        columns = {
            relation: kinds
            for relation in relations
            if (kinds := self._stored_columns(relation)) is not None
        }
        if columns != self.columns:
            self.columns = columns
            self._planned_queries = PlannedQueries(self._planned_queries)
            self.models, self._inputs = _plan_models(project, columns, self._planned_queries)
            self.stored = stored_queries(project, self.models)
            self._by_text.clear()

    def flat(self, test: DataTest) -> Flat | None:
        """Return the test's SQL with its views inlined, None if it cannot be taken apart."""
        if test.unique_id not in self._flats:
            try:
                views = views_of(self.project, test.session)
                self._flats[test.unique_id] = flatten(test.compiled_code, views)
            except Inapplicable:
                self._flats[test.unique_id] = None
        return self._flats[test.unique_id]

    def row_query(self, text: str, session: SessionSpec) -> RowQuery | None:
        """Return SQL as rows that each come from one row of one table; None if they do not."""
        plan = self._planned(text, session)
        signed = plan.strategy
        if plan.flat is None or plan.steps is not None or not isinstance(signed, Signed):
            return None
        return None if signed.outputs is not None or plan.slices else RowQuery(plan.flat, signed)

    def unique_key(self, unique_id: str) -> tuple[str, ...]:
        """Return the columns that a node's SQL makes unique; landing keeps a source's keys so."""
        source, model = self.project.sources.get(unique_id), self.project.models.get(unique_id)
        if source is not None:
            return source.row_rules.keys if source.stream is not None else ()
        if model is None:
            return ()
        if model.materialized == "view" and model.compiled_code:
            return self._planned(model.compiled_code, model.session).unique_key
        return self.models[unique_id].unique_key

    def readers_without(self, unique_id: str, column: str) -> list[str]:
        """Return the models that read a source and not this column of it, by unique id.

        A model of which that is not for certain is left out.
        """
        relation = self.project.sources[unique_id].relation
        readers = []
        for reader, model in self.project.models.items():
            if unique_id not in model.depends_on:
                continue
            plan = self.models[reader]
            if not model.is_stored and model.compiled_code:
                plan = self._planned(model.compiled_code, model.session)
            if plan.whole is not None and not _may_need(plan, plan.whole, relation, column):
                readers.append(reader)
        return readers

    def _planned(self, text: str, session: SessionSpec) -> Plan:
        key = (text, session)
        if key not in self._by_text:
            inputs = replace(self._inputs, views=views_of(self.project, session))
            other_views = view_relations(self.project) - inputs.views.keys()
            self._by_text[key] = _in_session(
                session, plan_query(text, inputs, self._planned_queries), other_views
            )
        return self._by_text[key]


def _may_need(plan: Plan, flat: Flat, relation: str, column: str) -> bool:
    """Return True if a query needs a column of a relation, or if that is not known."""
    # Those of a query that is cut are known for its steps alone.
    used = plan.used if plan.steps is None else {}
    needed = [
        used.get(occurrence.index)
        for occurrence in flat.occurrences
        if occurrence.relation == relation
    ]
    if None in needed and (open_names(flat) is None or column.lower() in flat.text.lower()):
        return True
    return not needed or any(column.lower() in (names or ()) for names in needed)


def _plan_models(
    project: Project, stored: Mapping[str, ColumnKinds], planned: PlannedQueries
) -> tuple[dict[str, Plan], Inputs]:
    """Return the plan of every model, and the facts of all relations."""
    columns: dict[str, tuple[str, ...]] = {}
    unique: dict[str, tuple[tuple[str, ...], ...]] = {}
    append_only: set[str] = set()
    clocks: set[str] = set()
    growing: dict[str, str | None] = {}
    for source in project.sources.values():
        stored_columns = tuple(stored.get(source.relation, ()))
        declared = tuple(column.name for column in source.columns)
        if source.is_provided:
            clocks.add(source.relation)
            marks = (OVERALL_WATERMARK, *(source.watermark for source in project.with_lateness))
            declared = marks if source.is_watermarks else declared or ("as_of",)
        elif source.stream is not None:
            declared = (*declared, *source.added_columns)
            if source.event_time is not None or not source.row_rules.keys:
                # Without either it may be as small as a list of shops.
                growing[source.relation] = source.event_time
            if source.row_rules.keys:
                unique[source.relation] = (source.row_rules.keys,)
            else:
                append_only.add(source.relation)
        if stored_columns or declared:
            columns[source.relation] = stored_columns or declared
    # One for all models: each finds there what the models before it have added.
    views_in_session = views_of(project, project.session)
    common = Inputs(columns, unique, views_in_session, clocks, append_only, growing, stored)
    by_session = {project.session.of_a_view: common}
    other_views: dict[SessionSpec, list[dict[str, str]]] = {}
    all_views = view_relations(project)
    plans: dict[str, Plan] = {}
    for unique_id, model in project.models.items():
        session = model.session.of_a_view
        if (inputs := by_session.get(session)) is None:
            inputs = by_session[session] = replace(common, views=views_of(project, session))
        if session not in other_views:
            other_views[session] = [views_of(project, session, run) for run in FIXED_RUNS]
        views = other_views[session]
        stored_columns = tuple(stored.get(model.relation, ())) if model.is_stored else ()
        if model.compiled_code is None:
            plan = Plan(Full(_unread(model)))
        elif not model.is_stored:
            plan = Plan(View())
        else:
            text = model.compiled_code
            if project.differs_with_run(unique_id):
                others = [
                    (as_in_run(model, run) or "", views_then)
                    for run, views_then in zip(FIXED_RUNS, views, strict=True)
                ]
                plan = plan_varying(text, others, inputs, planned)
            else:
                plan = plan_query(text, inputs, planned)
            plan = _under_policy(
                model,
                _in_session(model.session, plan, all_views - inputs.views.keys()),
                asks=bool(project.asking(unique_id)),
            )
        if model.materialized == "snapshot":
            # Build lets dbt keep its history: many rows for each one that the SQL gives.
            plan = Plan(Full(), names=_history_columns(model, plan.names))
        elif model.is_of_dbt:
            # Its SQL shows no key of rows that something else brings.
            why = _OWN_MATERIALIZATION if model.is_custom else _FILLED
            plan = Plan(Full((why,)), names=plan.names, flat=plan.whole)
        names = stored_columns or plan.names or tuple(column.name for column in model.columns)
        if names and (model.is_stored or not model.is_custom):
            # It is not known what other columns a materialization of the project's own makes.
            columns[model.relation] = names
        keys = tuple(key for key in (plan.unique_key, model.primary_key) if key)
        if keys:
            unique[model.relation] = keys
        if isinstance(plan.strategy, Append):
            append_only.add(model.relation)
        plan = replace(plan, fingerprint=fingerprint(model, views[0], plan, planned))
        if plan.steps is not None:
            plan = replace(plan, steps=_with_fingerprints(model, plan.steps))
        plans[unique_id] = plan
    for unique_id, note in _decided_more_than_once(project, by_session, planned):
        plans[unique_id] = replace(plans[unique_id], notes=(*plans[unique_id].notes, note))
    return plans, common


def _decided_more_than_once(
    project: Project, by_session: Mapping[SessionSpec, Inputs], planned: PlannedQueries
) -> Iterator[tuple[str, Reason]]:
    """Yield the note on each view or ephemeral model whose rows may tie for several tables.

    Each such table computes the rows again, and may see another answer than the next table.
    """
    readers: dict[str, list[str]] = {}
    for unique_id, model in project.models.items():
        if model.is_stored:
            for part in project.parts(unique_id)[:-1]:
                readers.setdefault(part, []).append(unique_id)
    for unique_id, read_by in readers.items():
        model = project.models[unique_id]
        inputs = by_session.get(model.session.of_a_view)
        if not read_by[1:] or inputs is None or not model.compiled_code:
            continue
        for tie in plan_query(model.compiled_code, inputs, planned).ties[:1]:
            # `plan` does not list ephemeral models.
            is_listed = model.materialized == "view"
            note = replace(
                tie,
                message=f"{tie.message} in {model.name}, and {len(read_by)} tables decide apart",
                line=tie.line if is_listed else None,
                suggestion="materialize it as a table: all then read one answer",
            )
            yield (unique_id if is_listed else read_by[0]), note


def views_of(project: Project, session: SessionSpec, run: int | None = None) -> dict[str, str]:
    """Return the SELECT text of every view that means the same in a session, by its relation.

    Spark reads a view with the settings under which it was made, so that its text says something
    else inside a statement that has others. `run`: one of the fixed runs; None is this one.
    """
    return {
        model.relation: model.compiled_code if run is None else as_in_run(model, run) or ""
        for model in project.models.values()
        if model.materialized == "view"
        and model.compiled_code is not None
        and model.session.of_a_view == session.of_a_view
    }


def view_relations(project: Project) -> set[str]:
    """Return the relations of all views, whatever their session."""
    return {model.relation for model in project.models.values() if model.materialized == "view"}


def as_in_run(node: Model | DataTest, run: int) -> str | None:
    """Return the SQL of a node in one of the fixed runs, empty if dbt refuses it there."""
    return node.in_other_runs[run] if node.in_other_runs else node.compiled_code


_FILLED = Reason(
    "FILLED_BY_HOOKS", "hooks write rows into its table: dbt makes it, and a refresh keeps it", None
)
_OWN_MATERIALIZATION = Reason(
    "OWN_MATERIALIZATION", "dbt makes its table when a table that it reads has changed", None
)
# The settings that decide which rows of its SQL a dbt snapshot keeps.
_OF_A_SNAPSHOT = (
    *("strategy", "unique_key", "check_cols", "updated_at", "dbt_valid_to_current"),
    *("hard_deletes", "invalidate_hard_deletes", "snapshot_meta_column_names"),
)


def fingerprint(model: Model, views: Mapping[str, str], plan: Plan, planned: PlannedQueries) -> str:
    """Return the hash of the canonical SQL and of the settings that shape the table.

    White space, comments and letter case of key words do not count; a view that is read does. If
    the SQL differs from run to run, the hash is that of a fixed run and of the parts that differ.

    Args:
        model: as it is compiled in this run.
        views: as of the fixed run.
        plan: of the model.
        planned: knows texts of before.
    """
    text = as_in_run(model, FIXED_RUNS[0]) or ""
    try:
        flat = planned.known(flatten(text, views))
        relations = ",".join(occurrence.relation for occurrence in flat.occurrences)
        text = f"{flat.words}\n{relations}"
    except Exception:
        # The text as it is tells changes, too.
        pass
    settings = f"{model.materialized}\n{','.join(model.partition_by)}\n{model.relation}"
    if plan.varies_with_run:
        settings += "\nvaries"
    elif plan.stamps:
        settings += f"\nstamps {','.join(plan.stamps)}"
    if model.materialized == "snapshot":
        snapshot_settings = {name: model.config.get(name) for name in _OF_A_SNAPSHOT}
        settings += f"\n{json.dumps(snapshot_settings, sort_keys=True, default=str)}"
    if model.is_custom:
        # Any setting may shape the table.
        settings += f"\n{json.dumps(dict(model.config), sort_keys=True, default=str)}"
    seed = model.config.get("checksum", "") if model.materialized == "seed" else ""
    # The rows that a dbt snapshot has kept cannot be made again.
    session = PLAIN if model.materialized == "snapshot" else model.session
    return _hashed(f"{text}\n{settings}\n{seed}", session)


def _with_fingerprints(model: Model, steps: Steps) -> Steps:
    """Return steps whose stages have a hash; it is that of the SQL of each stage alone."""
    stages = []
    for stage in steps.stages:
        flat = stage.plan.flat
        assert flat is not None
        relations = ",".join(mention.relation for mention in flat.occurrences)
        code = _hashed(f"{flat.words}\n{relations}", model.session)
        stages.append(replace(stage, plan=replace(stage.plan, fingerprint=code)))
    return replace(steps, stages=tuple(stages))


def _hashed(text: str, session: SessionSpec) -> str:
    code = sha256(text.encode()).hexdigest()
    return (
        code if session.is_plain else f"{code}{_SESSION}{sha256(session.text.encode()).hexdigest()}"
    )


def is_same_text(fingerprint: str, other: str) -> bool:
    """Return True if two fingerprints differ in nothing but the session of their SQL."""
    return fingerprint.partition(_SESSION)[0] == other.partition(_SESSION)[0]


def require_policies(project: Project, stored: Mapping[str, StoredQuery]) -> None:
    """Refuse models whose policy forbids the full refresh that their SQL would need.

    Raises:
        PlanError: POLICY_NOT_MET, naming every such model with its reasons.
    """
    if broken := broken_policies(project, stored):
        raise PlanError(
            "POLICY_NOT_MET",
            "\n".join(broken.values()),
            hint="follow the reason's advice, or set the policy to auto",
        )


def broken_policies(project: Project, stored: Mapping[str, StoredQuery]) -> dict[str, str]:
    """Return the message for each model of `require_policies` that breaks its policy, by unique id.

    The SQL of a model that dbt cannot compile yet is known once the relations that it asks exist.
    """
    broken = {}
    for unique_id, query in stored.items():
        if any(project.models[part].uncompiled for part in project.asking(query.owner.unique_id)):
            continue
        if query.is_stage:
            # A value that is computed again may be what lets its owner be incremental.
            continue
        model = query.owner
        is_full = isinstance(query.plan.strategy, Full) and query.made_by != "dbt"
        if is_full and query.policy in ("incremental", "strict"):
            reasons = query.plan.reasons
            why = "; ".join(f"{reason.code}: {reason.message}" for reason in reasons)
            line = next((reason.line for reason in reasons if reason.line), 1)
            place = reason_place(project, model, views_of(project, query.session), line)
            if place.file != model.file:
                # The policy is not written there.
                why, place = f"{why} ({place})", ReasonPlace(model.file)
            broken[unique_id] = f"{place}: refresh: {query.policy}, but {why}"
    return broken


def _in_session(session: SessionSpec, plan: Plan, other_views: Collection[str]) -> Plan:
    """Return a plan that holds in the session of its SQL; `other_views` have another one."""
    if isinstance(plan.strategy, Full) and plan.strategy.is_volatile:
        return plan
    for relation in plan.whole.relations if plan.whole is not None else ():
        if relation in other_views:
            reason = Reason("SESSION_SETTING", f"the view {relation} has another session", None)
            # The text of a view does not say which columns another such view yields.
            names = plan.names if plan.stamps else ()
            return replace(plan.uncut((reason,)), names=names, unique_key=(), notes=())
    functions = session.functions()
    unsteady = sorted(name for name, statement in functions if is_unsteady(statement))
    if unsteady:
        message = f"the function {unsteady[0]} reads tables, or differs between two runs"
        reason = Reason("EXPRESSION_NOT_DETERMINISTIC", message, None)
        plan = plan.uncut((reason,))
        return replace(plan, strategy=Full((reason,), is_volatile=True), unique_key=(), notes=())
    shadowing = sorted(dict(functions).keys() & (BUILT_IN_FUNCTIONS | AGGREGATE_FUNCTIONS))
    setting = session.unknown_effect() or (f"the function {shadowing[0]}" if shadowing else None)
    if setting is None or isinstance(plan.strategy, Full):
        return plan
    reason = Reason("SESSION_SETTING", f"`{setting}` may give its SQL another meaning", None)
    return replace(plan.uncut((reason,)), unique_key=(), notes=())


def _under_policy(model: Model, plan: Plan, *, asks: bool) -> Plan:
    if isinstance(plan.strategy, Full):
        return plan
    # A stage begins before all that its model reads is refreshed, so that nothing can be asked.
    if plan.steps is not None and (
        model.stages == "never" or model.is_of_dbt or plan.stamps or asks
    ):
        return plan.uncut(plan.steps.uncut)
    if model.policy == "full":
        return plan.uncut((Reason("POLICY_FULL", "the model's policy is full", None),))
    if plan.ties and model.ties == "full":
        reason = Reason("POLICY_FULL", "the model says `ties: full`", None)
        return plan.uncut((reason, *plan.ties))
    return plan


def _history_columns(model: Model, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of a dbt snapshot whose SQL yields `names`; empty if it is not known."""
    renamed = model.config.get("snapshot_meta_column_names")
    new_names = renamed if isinstance(renamed, Mapping) else {}
    history = [*_HISTORY_COLUMNS]
    if model.config.get("hard_deletes") == "new_record":
        history.append("dbt_is_deleted")
    return (*names, *(str(new_names.get(name) or name) for name in history)) if names else ()


def _unread(model: Model) -> tuple[Reason, ...]:
    """Return why a model without SQL is recomputed; seeds and snapshots are for build alone."""
    if model.materialized in ("seed", "snapshot"):
        return ()
    if model.uncompiled:
        why = " ".join(model.uncompiled.split())
        return (Reason("ASKS_THE_WAREHOUSE", f"dbt cannot compile it yet: {why}", None),)
    return (Reason("PARSE_UNSUPPORTED", "no compiled SQL: there is nothing to analyse", None),)
