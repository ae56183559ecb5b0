"""Finds the session in which each node of a project means the same as in a build.

Used when the project is read. dbt runs on-run-start first, and the hooks of a node around it, in
one session. Settings that a node's inputs have made, as all nodes above them, hold for it. Settings
that other nodes happen to make before it do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from livemart.project.declared.map_columns import MapColumns
from livemart.project.graph import DataTest, Model, Project
from livemart.project.hooks.dbt_hooks import NOT_RENDERED, Hooks
from livemart.project.session_spec import (
    SessionSpec,
    defining,
    is_asking,
    is_defining,
    is_setting,
    makes_function,
    profile_spec,
)


def with_sessions(project: Project, parameters: Mapping[str, str], hooks: Hooks) -> Project:
    """Return the project with the session of each model and test.

    Args:
        project: its models are in dependency order.
    """
    base = profile_spec(parameters).then(defining(hooks.on_run_start, parameters))
    functions = defining(hooks.functions, parameters)
    before = {key: defining(sent, parameters) for key, sent in hooks.before.items()}
    after = {key: left for key, sent in hooks.after.items() if (left := defining(sent, parameters))}
    above: dict[str, frozenset[str]] = {}
    place = {unique_id: index for index, unique_id in enumerate(project.models)}

    def all_above(parents: Iterable[str]) -> frozenset[str]:
        return frozenset(key for parent in parents for key in (parent, *above.get(parent, ())))

    def inherited(nodes: frozenset[str]) -> SessionSpec:
        spec = base.then(functions)
        for key in sorted(nodes & place.keys(), key=place.__getitem__):
            spec = spec.then(before.get(key, ())).then(after.get(key, ()))
        return spec

    declared = [column for source in project.sources.values() for column in source.columns]
    declared += [column for model in project.models.values() for column in model.columns]
    maps = MapColumns(declared)
    # The text of each node that holds no rows, with those that it reads.
    views: dict[str, str] = {}

    def with_views(text: str, parents: Iterable[str]) -> str:
        return "\n".join((text, *(views[parent] for parent in parents if parent in views)))

    models: dict[str, Model] = {}
    for unique_id, model in project.models.items():
        above[unique_id] = all_above(model.depends_on)
        spec = inherited(above[unique_id])
        text = with_views(model.compiled_code or "", model.depends_on)
        if not model.is_stored:
            views[unique_id] = text
        whole = spec.then(before.get(unique_id, ()))
        sent = (*hooks.before.get(unique_id, ()), *hooks.after.get(unique_id, ()))
        # dbt runs the node's own hooks itself: it begins without what they create or leave behind.
        is_alone = unique_id in after or not all(map(is_setting, before.get(unique_id, ())))
        begun = spec if is_alone else whole
        # A build may compile it into another text.
        is_asking_node = bool(model.uncompiled) or unique_id in project.questions
        if not is_asking_node and not any(statement.startswith(NOT_RENDERED) for statement in sent):
            named = "\n".join((text, *sent))
            begun = begun.needed_by(named, keeps=len(base.statements))
        is_whole = model.compiled_code or model.materialized == "seed"
        session = whole.needed_by(text) if is_whole else whole
        maps.add(text)
        if model.is_stored and maps.groups(text):
            session, begun = session.interpreted(), begun.interpreted()
        models[unique_id] = replace(
            model,
            session=session,
            session_in_dbt=begun,
            is_alone_in_dbt=is_alone,
            acting_hooks=_acting(sent),
        )
    tests: dict[str, DataTest] = {}
    for unique_id, test in project.tests.items():
        text = with_views(test.compiled_code, test.depends_on)
        spec = inherited(all_above(test.depends_on)).needed_by(text)
        session = spec.interpreted() if maps.groups(text) else spec
        tests[unique_id] = replace(test, session=session)
    return replace(
        project,
        models=models,
        tests=tests,
        session=base,
        functions=(*functions, *filter(makes_function, base.statements)),
        acting_hooks=_acting((*hooks.on_run_start, *hooks.on_run_end)),
    )


def _acting(sent: Iterable[str]) -> tuple[str, ...]:
    return tuple(it for it in sent if not is_defining(it) and not is_asking(it))
