"""Lists the queries whose rows are kept in tables, each with all that decides about its table.

Used by every step that moves, pins, compares or removes tables. None of them looks up the model of
a plan, or the plan of a model, by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from livemart.plan.plan import Plan
from livemart.plan.reasons import Reason
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.template import Template
from livemart.project.graph import Model, Policy, Project, SourceTable
from livemart.project.session_spec import SessionSpec

MadeBy = Literal["sql", "dbt", "seed"]
# The schema of all stages. Spark's catalog holds no folder whose name begins so.
STAGES = "_livemart_stages"


@dataclass(frozen=True)
class StoredQuery:
    """A query with its rows in a table of the warehouse."""

    unique_id: str
    relation: str
    plan: Plan
    flat: Flat | None
    """Its SQL over tables; the last step alone, if it is cut; None if it cannot be taken apart."""
    reads: tuple[str, ...]
    """The relations of the tables that it reads, through views."""
    parents: frozenset[str]
    """The queries among these, by unique id."""
    partition_by: tuple[str, ...]
    made_by: MadeBy
    """Its rows come from its SQL, from dbt (see `Model.is_of_dbt`), or a seed."""
    owner: Model
    """The model that it belongs to."""
    stages: tuple[str, ...] = ()
    """Unique ids of the parts of it that have a table, if it is cut: each before its readers."""
    asks_warehouse: bool = False
    """True if its SQL depends on answers that the warehouse gave while it was compiled."""

    @property
    def is_stage(self) -> bool:
        """True if it is a part of its owner, which alone reads it."""
        return self.unique_id != self.owner.unique_id

    @property
    def decides_in_stages(self) -> bool:
        """True if its stages may decide about rows that tie otherwise than the SQL as one."""
        return any(stage.plan.may_decide for stage in self.plan.stages)

    @property
    def last_step(self) -> StoredQuery:
        """Its last step alone, over the tables of its stages."""
        return replace(self, plan=self.plan.last_step, stages=())

    def uncut(self, failed: str, why: str = "see the log") -> StoredQuery:
        """Return the query as if it were not cut, because its stage, or last step, `failed`."""
        step = "its last step" if failed == self.unique_id else failed
        plan = self.plan.uncut((Reason("STRATEGY_FAILED", f"{step} failed: {why}", None),))
        reads = plan.flat.relations if plan.flat is not None else ()
        return replace(self, plan=plan, flat=plan.flat, reads=reads, stages=())

    @property
    def fingerprint(self) -> str:
        """The hash of all that decides about its rows."""
        return self.plan.fingerprint

    @property
    def reason_of_dbt(self) -> str:
        """The reason code of a table that dbt alone writes."""
        return "OWN_MATERIALIZATION" if self.owner.is_custom else "FILLED_BY_HOOKS"

    @property
    def session(self) -> SessionSpec:
        """The settings and statements that the SQL needs besides itself."""
        return self.owner.session

    @property
    def policy(self) -> Policy:
        """Whether a refresh may recompute it in full."""
        return self.owner.policy


def is_stage_table(relation: str) -> bool:
    """Return True for the relation of a stage's table.

    >>> is_stage_table("_livemart_stages.top_shops__c8b1__1"), is_stage_table("mart.top_shops")
    (True, False)
    """
    return relation.startswith(f"{STAGES}.")


def stored_queries(project: Project, plans: Mapping[str, Plan]) -> dict[str, StoredQuery]:
    """Return the stored queries of a project by unique id, in dependency order.

    Args:
        plans: of all models, by unique id.
    """
    queries: dict[str, StoredQuery] = {}
    of_relation: dict[str, str] = {}

    def add(query: StoredQuery) -> None:
        # Tables that SQL names without `ref` are read as well, if they come before.
        named = {of_relation[read] for read in query.reads if read in of_relation}
        queries[query.unique_id] = replace(query, parents=query.parents | named)
        of_relation[query.relation] = query.unique_id

    for unique_id, model in project.models.items():
        if not model.is_stored:
            continue
        plan, tables = plans[unique_id], _read_tables(project, model)
        query = StoredQuery(
            unique_id,
            model.relation,
            plan,
            plan.whole,
            reads=_reads(model, plan, tuple(tables.values())),
            parents=frozenset(tables.keys() & project.models.keys()),
            partition_by=model.partition_by,
            made_by=_made_by(model),
            owner=model,
            asks_warehouse=bool(project.asking(unique_id)),
        )
        for step in _in_steps(query):
            add(step)
    return queries


def _in_steps(query: StoredQuery) -> list[StoredQuery]:
    """Return the stages of a query, each before its readers, and the query that reads them."""
    _, _, name = query.unique_id.partition(".")
    # Two models in two schemas may have one name.
    schema = sha256(query.relation.encode()).hexdigest()[:8]
    table = f"{STAGES}.{query.relation.partition('.')[2]}__{schema}"
    relations: dict[str, str] = {}
    steps = []
    for number, stage in enumerate(query.plan.stages, start=1):
        relations[stage.relation] = f"{table}__{number}"
        step = replace(
            _over(query, stage.plan, relations),
            unique_id=f"stage.{name}__{number}",
            relation=relations[stage.relation],
            partition_by=(),
        )
        steps.append(step)
    if steps:
        stages = tuple(step.unique_id for step in steps)
        query = replace(_over(query, query.plan, relations), stages=stages)
    return [*steps, query]


def _over(query: StoredQuery, plan: Plan, relations: Mapping[str, str]) -> StoredQuery:
    """Return a query with the plan of one of its steps, over the tables of its stages."""
    assert plan.flat is not None

    def stored(mention: Occurrence) -> Template[Occurrence]:
        relation = relations.get(mention.relation, mention.relation)
        text = relation if mention.relation in relations else mention.text
        return Template((Occurrence(mention.index, relation, text),))

    flat = Flat(plan.flat.over(stored).pieces)
    return replace(query, plan=replace(plan, flat=flat), flat=flat, reads=flat.relations)


def _reads(model: Model, plan: Plan, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the relations that a model reads; `named`: those that dbt knows of."""
    if plan.whole is None:
        return named
    if not model.is_of_dbt:
        return plan.whole.relations
    # A macro may read tables that the SQL does not name.
    return tuple(dict.fromkeys((*plan.whole.relations, *named)))


def _made_by(model: Model) -> MadeBy:
    if model.materialized == "seed":
        return "seed"
    return "dbt" if model.is_of_dbt else "sql"


def _read_tables(project: Project, model: Model) -> dict[str, str]:
    """Return the stored models and the sources that a model reads, through views: id, relation."""
    nodes: dict[str, Model | SourceTable] = {}
    stack = [*model.depends_on]
    while stack:
        unique_id = stack.pop()
        node = project.models.get(unique_id) or project.sources.get(unique_id)
        if node is not None and unique_id not in nodes:
            nodes[unique_id] = node
            if isinstance(node, Model) and not node.is_stored:
                stack += node.depends_on
    return {
        unique_id: node.relation
        for unique_id, node in nodes.items()
        if isinstance(node, SourceTable) or node.is_stored
    }
