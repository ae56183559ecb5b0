"""Lists the queries whose rows are kept in tables, each with all that decides about its table.

Used by every step that moves, pins, compares or removes tables. None of them looks up the model of
a plan, or the plan of a model, by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from livemart.plan.planner import Plan
from livemart.plan.sql.flatten import Flat
from livemart.project.graph import Model, Policy, Project, SourceTable
from livemart.project.session_spec import SessionSpec

MadeBy = Literal["sql", "dbt", "seed"]


@dataclass(frozen=True)
class StoredQuery:
    """A query with its rows in a table of the warehouse.

    `reads`: the relations of the tables that it reads, through views; `parents`: the queries among
    them, by unique id. `made_by`: who makes its rows: its SQL, dbt alone (a dbt snapshot, a table
    that hooks fill), or a seed's file. `owner`: the model that it belongs to.
    """

    unique_id: str
    relation: str
    plan: Plan
    reads: tuple[str, ...]
    parents: frozenset[str]
    partition_by: tuple[str, ...]
    made_by: MadeBy
    owner: Model
    asks_warehouse: bool = False
    """True if its SQL depends on answers that the warehouse gave while it was compiled."""

    @property
    def flat(self) -> Flat | None:
        """The SQL; None if it cannot be taken apart."""
        return self.plan.flat

    @property
    def fingerprint(self) -> str:
        """The hash of all that decides about its rows."""
        return self.plan.fingerprint

    @property
    def session(self) -> SessionSpec:
        """The settings and statements that the SQL needs besides itself."""
        return self.owner.session

    @property
    def policy(self) -> Policy:
        """Whether a refresh may recompute it in full."""
        return self.owner.policy


def stored_queries(project: Project, plans: Mapping[str, Plan]) -> dict[str, StoredQuery]:
    """Return the stored queries of a project by unique id, in dependency order.

    Args:
        plans: of all models, by unique id.
    """
    queries: dict[str, StoredQuery] = {}
    of_relation: dict[str, str] = {}
    for unique_id, model in project.models.items():
        if not model.is_stored:
            continue
        plan, tables = plans[unique_id], _read_tables(project, model)
        # Tables that SQL names without `ref` are read as well, if they come before.
        named = plan.flat.relations if plan.flat is not None else ()
        queries[unique_id] = StoredQuery(
            unique_id,
            model.relation,
            plan,
            reads=tuple(tables.values()) if plan.flat is None else named,
            parents=frozenset(tables.keys() & project.models.keys())
            | {of_relation[relation] for relation in named if relation in of_relation},
            partition_by=model.partition_by,
            made_by=_made_by(model),
            owner=model,
            asks_warehouse=bool(project.asking(unique_id)),
        )
        of_relation[model.relation] = unique_id
    return queries


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
