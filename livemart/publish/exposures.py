"""Finds the models to serve: those that an exposure names, if their rows are stored.

Used when publication begins. A view has no table to read changes from, so it is not served.
"""

from __future__ import annotations

from dataclasses import dataclass

from livemart.project.graph import Project


def served_models(project: Project) -> tuple[tuple[ServedSpec, ...], tuple[str, ...]]:
    """Return the models to serve, and the unique ids of those that are named but not stored.

    A model goes by its name; if another package has one of that name, by its identifier.
    """
    named = sorted(
        {node for exposure in project.exposures.values() for node in exposure.depends_on}
    )
    models = [project.models[node] for node in named if node in project.models]
    stored = [model for model in models if model.is_stored]
    names = [model.name for model in stored]
    specs = tuple(
        ServedSpec(
            name=model.name if names.count(model.name) == 1 else model.identifier,
            unique_id=model.unique_id,
            relation=model.relation,
            row_key=model.primary_key,
            event_time=model.event_time,
        )
        for model in stored
    )
    return specs, tuple(model.unique_id for model in models if not model.is_stored)


@dataclass(frozen=True, slots=True)
class ServedSpec:
    """A model to be served, as the project declares it.

    `unique_id` finds its state in a snapshot, `relation` its table; `row_key` is the declared key,
    empty if there is none; `event_time` the declared column, if any.
    """

    name: str
    unique_id: str
    relation: str
    row_key: tuple[str, ...] = ()
    event_time: str | None = None
