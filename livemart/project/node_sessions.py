"""Says in which session each node of a project means what it means in a build.

Used when the project is read. dbt runs on-run-start first, and the hooks of a node around it, in
one session: what a node's inputs have set up, as all above them, holds for it. What other nodes
happen to set up before it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from livemart.project.dbt_hooks import Hooks
from livemart.project.graph import DataTest, Model, Project
from livemart.project.session_spec import (
    SessionSpec,
    defining,
    is_asking,
    is_defining,
    profile_spec,
    runs_again,
)


def with_sessions(project: Project, parameters: Mapping[str, str], hooks: Hooks) -> Project:
    """Return the project with the session of each model and test.

    Args:
        project: its models are in dependency order.
        parameters: of the profile.
        hooks: of the project, rendered.
    """
    base = profile_spec(parameters).then(defining(hooks.on_run_start, parameters))
    before = {key: defining(sent, parameters) for key, sent in hooks.before.items()}
    after = {key: defining(sent, parameters) for key, sent in hooks.after.items()}
    above: dict[str, frozenset[str]] = {}
    place = {unique_id: index for index, unique_id in enumerate(project.models)}

    def inherited(parents: Iterable[str]) -> SessionSpec:
        spec = base
        known = {key for parent in parents for key in (parent, *above.get(parent, ()))}
        for key in sorted(known & place.keys(), key=place.__getitem__):
            spec = spec.then(before.get(key, ())).then(after.get(key, ()))
        return spec

    models: dict[str, Model] = {}
    for unique_id, model in project.models.items():
        above[unique_id] = frozenset(
            key for parent in model.depends_on for key in (parent, *above.get(parent, ()))
        )
        spec = inherited(model.depends_on)
        models[unique_id] = replace(
            model,
            session_before=spec,
            session=spec.then(before.get(unique_id, ())),
            acting_hooks=_acting(hooks.before.get(unique_id, ()), hooks.after.get(unique_id, ())),
        )
    tests: dict[str, DataTest] = {
        unique_id: replace(test, session=inherited(test.depends_on))
        for unique_id, test in project.tests.items()
    }
    return replace(
        project,
        models=models,
        tests=tests,
        session=base,
        acting_hooks=_acting(hooks.on_run_start),
    )


def sessions_in_a_build(project: Project) -> tuple[dict[str, SessionSpec], frozenset[str]]:
    """Return the session in which dbt begins with each node, and the nodes that need one alone.

    dbt runs the hooks of a node itself. Where they may run twice, nodes of a spec share a session.
    """
    specs: dict[str, SessionSpec] = {key: test.session for key, test in project.tests.items()}
    alone: set[str] = set()
    for unique_id, model in project.models.items():
        first = len(model.session_before.statements)
        if all(map(runs_again, model.session.statements[first:])):
            specs[unique_id] = model.session
        else:
            specs[unique_id] = model.session_before
            alone.add(unique_id)
    return specs, frozenset(alone)


def _acting(*sent: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        statement
        for statements in sent
        for statement in statements
        if not is_defining(statement) and not is_asking(statement)
    )
