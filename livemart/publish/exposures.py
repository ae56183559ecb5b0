"""Which models are served: those that an exposure names, if their rows are stored."""

from __future__ import annotations

from livemart.project.graph import Project
from livemart.store.served import ServedSpec


def served_models(project: Project) -> tuple[tuple[ServedSpec, ...], tuple[str, ...]]:
    """Return the models to serve, and the unique ids that exposures name but nobody stores.

    A model goes by its name; if another package has one of that name, by its identifier.
    """
    named = sorted({node for each in project.exposures.values() for node in each.depends_on})
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
