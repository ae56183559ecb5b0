"""Finds the models that name a column of a landed table which its source does not declare.

Used when the project is read. A landed table keeps a column that was taken out of the YAML, and a
new warehouse would never have it: the model fails there. So it is refused here, too.
"""

from __future__ import annotations

from livemart.errors import RefreshError
from livemart.plan.project_plans import ProjectPlans, views_of
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import flatten
from livemart.plan.sql.used_columns import named_columns


def require_declared(plans: ProjectPlans) -> None:
    """Refuse models that name a column which the YAML of a landed source does not declare.

    Not with `schema_drift: evolve`, by which records bring columns that no YAML declares.

    Raises:
        RefreshError: MODEL_FAILED, as on a new warehouse, naming all such models.
    """
    if messages := undeclared_reads(plans):
        raise RefreshError(
            "MODEL_FAILED",
            "\n".join(messages.values()),
            hint="declare the column under `columns` again, or take it out of the model: a new "
            "warehouse would not have it",
            models=messages,
        )


def undeclared_reads(plans: ProjectPlans) -> dict[str, str]:
    """Return the message for each model of `require_declared`, by unique id.

    A model that gets the column from a view that names it is left out: the view is to be mended.
    """
    project = plans.project
    undeclared = _undeclared(plans)
    messages: dict[str, str] = {}
    for unique_id, model in project.models.items() if undeclared else ():
        if model.compiled_code is None or model.materialized in ("seed", "ephemeral"):
            continue
        try:
            flat = flatten(model.compiled_code, views_of(project, model.session))
        except Inapplicable:
            continue
        named = named_columns(flat, {it: plans.columns[it] for it in undeclared if plans.columns})
        refused = sorted((it, name) for it, name in named if name in undeclared.get(it, ()))
        if refused and messages.keys().isdisjoint(project.parts(unique_id)):
            files = {source.relation: source.file for source in project.sources.values()}
            messages[unique_id] = "\n".join(
                f"{model.file}: {model.name} reads {name} of {relation}, and {files[relation]} "
                "does not declare it"
                for relation, name in refused
            )
    return messages


def _undeclared(plans: ProjectPlans) -> dict[str, frozenset[str]]:
    """Return the columns of landed tables that no YAML declares, in lower case, by relation."""
    undeclared = {}
    for source in plans.project.sources.values():
        if source.stream is None or source.row_rules.schema_drift == "evolve":
            continue
        declared = {it.name.lower() for it in source.columns} | {*source.added_columns}
        stored = (plans.columns or {}).get(source.relation, ())
        if names := frozenset(map(str.lower, stored)) - declared:
            undeclared[source.relation] = names
    return undeclared
