"""Finds the models to serve: those that an exposure names, if their rows are stored.

Used when publication begins, and wherever the reason for serving a model is shown. A view
has no table to read changes from, so it is not served. An exposure of type `dashboard` is a page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from livemart.project.declared.model_page import NO_PAGE
from livemart.project.graph import Model, Project
from livemart.state.snapshots import Snapshot
from livemart.store.served import Dashboard, DescribedTest, ModelDescription, ProjectPages

# Enough to see how it is written.
_MOST_NAMED = 3
# As dbt writes unique ids: kind, package, name, and the version if there are several.
_MODEL = re.compile(r"model\.[^.]+\.(.+?)(?:\.v([0-9]+))?")


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
            description=_describe(model),
            tests=_tests_of(project, model),
        )
        for model in stored
    )
    return specs, tuple(model.unique_id for model in models if not model.is_stored)


def project_pages(project: Project, served: Iterable[ServedSpec]) -> ProjectPages:
    """Return how the pages of the served models look, and a dashboard for each such exposure.

    A dashboard goes by the exposure's name; if another package has one of that name, by both. One
    without a served model is left out.
    """
    names = {spec.unique_id: spec.name for spec in served}
    pages = {names[node]: project.models[node].page for node in names}
    boards = [exposure for exposure in project.exposures.values() if exposure.type == "dashboard"]
    named = Counter(board.name for board in boards)
    dashboards = {
        it.name if named[it.name] == 1 else it.unique_id.removeprefix("exposure."): Dashboard(
            it.label or it.name,
            it.description,
            tuple(dict.fromkeys(names[node] for node in it.depends_on if node in names)),
        )
        for it in boards
    }
    return ProjectPages(
        {name: page for name, page in pages.items() if page != NO_PAGE},
        {name: board for name, board in dashboards.items() if board.models},
    )


def exposure_to_paste(unique_ids: Iterable[str]) -> str:
    """Return the YAML of an exposure that names the last models among these nodes.

    Seeds and dbt snapshots are left out: they are no marts. Without a model there is a placeholder.
    """
    refs = []
    for unique_id in unique_ids:
        if form := _MODEL.fullmatch(unique_id):
            version = f", v={form[2]}" if form[2] else ""
            refs.append(f"ref('{form[1]}'{version})")
    lines = [
        "exposures:",
        "  - name: dashboard",
        "    type: dashboard",
        "    owner: {name: your name, email: you@example.com}",
        "    depends_on:",
    ]
    named = refs[-_MOST_NAMED:] or ["ref('name_of_a_model')"]
    return "\n".join([*lines, *(f"      - {ref}" for ref in named)])


@dataclass(frozen=True, slots=True)
class ServedSpec:
    """A model to be served, as the project declares it.

    `unique_id` finds its state in a snapshot, `relation` its table; `row_key` is the declared key,
    empty if there is none; `event_time` the declared column, if any. `tests`: by unique id.
    """

    name: str
    unique_id: str
    relation: str
    row_key: tuple[str, ...] = ()
    event_time: str | None = None
    # How a model is described decides nothing about its rows.
    description: ModelDescription = field(default=ModelDescription(), compare=False)
    tests: Mapping[str, DescribedTest] = field(default_factory=dict, compare=False)

    def described_in(self, snapshot: Snapshot) -> ModelDescription:
        """Return the description with the outcomes that the tests have in a snapshot."""
        tests = tuple(
            replace(test, outcome=snapshot.tests.get(unique_id))
            for unique_id, test in self.tests.items()
        )
        return replace(self.description, tests=tests)


def _describe(model: Model) -> ModelDescription:
    return ModelDescription(
        text=model.description,
        columns=dict(model.column_descriptions),
        sql=model.raw_code,
        compiled_sql=model.compiled_code or "",
    )


def _tests_of(project: Project, model: Model) -> dict[str, DescribedTest]:
    """Return the tests of a model by unique id; one that is written as SQL is of all it reads."""
    return {
        unique_id: DescribedTest(test.name, test.kind, test.column_name, test.severity)
        for unique_id, test in project.tests.items()
        if model.unique_id == test.attached_to
        or (test.attached_to is None and model.unique_id in test.depends_on)
    }
