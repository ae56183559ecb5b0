"""Keeps the graph of the project that runs: its sources, models and exposures, and who reads whom.

Used by the pipeline, which writes it, and by the console, `status` and `doctor`, which read no
project.
"""

from __future__ import annotations

from dataclasses import dataclass

from livemart.project.graph import STORED, Model, Project
from livemart.state.atomic_files import look_at_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

SERVES_NOTHING = "no exposure of the project names a model that has a table, so nothing is served"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A source, a model or an exposure of the project."""

    unique_id: str
    kind: str
    """Source, exposure, or how a model is materialized: `table` by the project's own way, too."""
    name: str
    relation: str = ""
    """The relation of its table; empty without one."""
    reads: tuple[str, ...] = ()
    """Unique ids."""
    tests: tuple[str, ...] = ()
    """Unique ids of the data tests of its rows."""


@dataclass(frozen=True, slots=True)
class ProjectGraph:
    """All nodes, each behind those that it reads."""

    project: str
    nodes: tuple[GraphNode, ...] = ()

    @property
    def is_served(self) -> bool:
        """True if an exposure names a model whose rows are a table."""
        stored = {node.unique_id for node in self.nodes if node.kind in STORED}
        exposures = (node for node in self.nodes if node.kind == "exposure")
        return any(not stored.isdisjoint(exposure.reads) for exposure in exposures)


def graph_of(project: Project) -> ProjectGraph:
    """Return the graph of a project; a source that livemart itself writes is left out."""
    provided = {key for key, source in project.sources.items() if source.is_provided}
    tests: dict[str, list[str]] = {}
    for key, test in project.tests.items():
        for tested in (test.attached_to,) if test.attached_to else test.depends_on:
            tests.setdefault(tested, []).append(key)

    def node_of(key: str, kind: str, name: str, relation: str, reads: tuple[str, ...]) -> GraphNode:
        read = tuple(dict.fromkeys(read for read in reads if read not in provided))
        return GraphNode(key, kind, name, relation, read, tuple(tests.get(key, ())))

    sources = [
        node_of(key, "source", f"{source.source_name}.{source.name}", source.relation, ())
        for key, source in project.sources.items()
        if key not in provided
    ]
    models = [
        node_of(key, _kind(model), model.name, model.relation, model.depends_on)
        for key, model in project.models.items()
    ]
    exposures = [
        node_of(key, "exposure", exposure.label or exposure.name, "", exposure.depends_on)
        for key, exposure in project.exposures.items()
    ]
    return ProjectGraph(project.name, (*sources, *models, *exposures))


def _kind(model: Model) -> str:
    return "table" if model.is_custom and model.is_stored else model.materialized


def keep_graph(warehouse: StoragePlace, project: Project) -> None:
    """Keep the graph of the project that begins to run, if it is another one."""
    graph = graph_of(project)
    if read_graph(warehouse) != graph:
        write_state_file(StateFolder(warehouse).project_graph, graph)


def read_graph(warehouse: StoragePlace) -> ProjectGraph | None:
    """Return the graph; None if none was kept, or its file is unreadable."""
    return look_at_state_file(StateFolder(warehouse).project_graph, ProjectGraph)


def serves_nothing(warehouse: StoragePlace) -> bool:
    """Return True if a kept graph shows that the project has no model to serve."""
    graph = read_graph(warehouse)
    return graph is not None and not graph.is_served
