"""Finds models and data tests that name a column of a landed table which no YAML declares.

Used when the project is read. A landed table keeps a column that was taken out of the YAML, and a
new warehouse would never have it: the model or test fails there. So it is refused here, too. A
stored model that selects `*` passes such a column on to its readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from livemart.errors import RefreshError
from livemart.plan.project_plans import ProjectPlans, views_of
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.sql.used_columns import named_columns, output_columns
from livemart.project.graph import SourceTable

# The source of each undeclared column of a stored table, in lower case.
_Undeclared = Mapping[str, SourceTable]


def require_declared(plans: ProjectPlans) -> None:
    """Refuse models and tests that name a column which the YAML of a source does not declare.

    Not with `schema_drift: evolve`, by which records bring columns that no YAML declares.

    Raises:
        RefreshError: MODEL_FAILED, as on a new warehouse, naming all such models and tests.
    """
    if messages := undeclared_reads(plans):
        raise RefreshError(
            "MODEL_FAILED",
            "\n".join(messages.values()),
            hint="declare the column under `columns` again, or take it out of the SQL: a new "
            "warehouse would not have it",
            models=[key for key in messages if key in plans.project.models],
        )


def undeclared_reads(plans: ProjectPlans) -> dict[str, str]:
    """Return the message for each model and test of `require_declared`, by unique id.

    A reader that gets the column from a view that names it is left out: the view is to be mended.
    """
    project = plans.project
    undeclared = _undeclared(plans)
    messages: dict[str, str] = {}
    if not undeclared:
        return messages
    for unique_id, model in project.models.items():
        if model.compiled_code is None or model.materialized in ("seed", "ephemeral"):
            continue
        try:
            flat = flatten(model.compiled_code, views_of(project, model.session))
        except Inapplicable:
            continue
        reads = list(_reads(plans, flat, undeclared))
        if reads and messages.keys().isdisjoint(project.parts(unique_id)):
            messages[unique_id] = "\n".join(f"{model.file}: {model.name} {read}" for read in reads)
        if passed_on := _passed_on(plans, flat, undeclared) if model.is_stored else {}:
            undeclared[model.relation] = passed_on
    for unique_id, test in project.tests.items():
        test_flat = plans.flat(test)
        reads = [] if test_flat is None else list(_reads(plans, test_flat, undeclared))
        if reads and messages.keys().isdisjoint(project.parts(unique_id)):
            messages[unique_id] = "\n".join(f"{test.file}: {test.name} {read}" for read in reads)
    return messages


def _reads(plans: ProjectPlans, flat: Flat, undeclared: Mapping[str, _Undeclared]) -> Iterator[str]:
    """Yield the sentence on each undeclared column that a query names."""
    stored = _stored_columns(plans)
    named = named_columns(flat, {key: stored[key] for key in undeclared if key in stored})
    for relation, name in sorted(named):
        if (source := undeclared[relation].get(name)) is not None:
            way = "" if source.relation == relation else f", a column of {source.relation}"
            yield f"reads {name} of {relation}{way}, and {source.file} does not declare it"


def _passed_on(
    plans: ProjectPlans, flat: Flat, undeclared: Mapping[str, _Undeclared]
) -> _Undeclared:
    """Return the columns that a stored model would not have in a new warehouse."""
    read = [undeclared[relation] for relation in flat.relations if relation in undeclared]
    if not read:
        return {}
    stored = _stored_columns(plans)
    new = {
        relation: tuple(name for name in names if name.lower() not in undeclared.get(relation, ()))
        for relation, names in stored.items()
    }
    lost_names = {*output_columns(flat, stored)} - {*output_columns(flat, new)}
    return {name: columns[name] for columns in read for name in lost_names if name in columns}


def _undeclared(plans: ProjectPlans) -> dict[str, _Undeclared]:
    """Return the columns of landed tables that no YAML declares, by relation."""
    undeclared: dict[str, _Undeclared] = {}
    all_stored = _stored_columns(plans)
    for source in plans.project.sources.values():
        if source.stream is None or source.row_rules.schema_drift == "evolve":
            continue
        declared = {column.name.lower() for column in source.columns} | {*source.added_columns}
        stored = all_stored.get(source.relation, ())
        if names := frozenset(map(str.lower, stored)) - declared:
            undeclared[source.relation] = dict.fromkeys(names, source)
    return undeclared


def _stored_columns(plans: ProjectPlans) -> dict[str, tuple[str, ...]]:
    return {relation: tuple(kinds) for relation, kinds in (plans.columns or {}).items()}
