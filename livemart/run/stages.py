"""Lists the stages of a micro-batch.

Used by `BatchRunner`, which runs one stage after the other; each returns the batch that the next
one starts from. The list is made once the batch is drafted: only then are the changes known.
Nothing here reads a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from livemart.check.checks import TestResult
from livemart.land.landing import LandedBatch
from livemart.project.graph import Project
from livemart.refresh.frontier import Rebuild, Start
from livemart.state.snapshots import Kind, Snapshot


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch: its inputs, the starts of its models, and the results of its stages."""

    kind: Kind
    project: Project
    epoch: str
    landed: LandedBatch
    frontier: Snapshot | None
    """The newest row of the log, None before the first build."""
    as_of: datetime | None
    """Fixed by the draft, as are `sources`."""
    sources: Mapping[str, int]
    """The version of each source, by relation."""
    started_at: datetime
    seeds: frozenset[str] = frozenset()
    """The stored queries whose rows are files of the project."""
    starts: Mapping[str, Start] = field(default_factory=dict)
    """The starts of stored models, by unique id; in a build, of those that it leaves out."""
    unedited: Mapping[str, str] = field(default_factory=dict)
    """The outcome at the frontier of the tests that are unchanged, by unique id."""
    run_dependent: frozenset[str] = frozenset()
    """The nodes whose SQL mentions its run."""
    snapshot: Snapshot | None = None
    """Is in the log once it is appended."""
    checks: Mapping[str, TestResult] = field(default_factory=dict)
    """The results of its tests."""

    @property
    def rebuilds(self) -> dict[str, Rebuild]:
        """The models that are rebuilt, by unique id."""
        return {key: it for key, it in self.starts.items() if isinstance(it, Rebuild)}


@dataclass(frozen=True, slots=True)
class Stage:
    """Something that is done to a whole batch."""


class BuildModels(Stage):
    """Let dbt build the whole project, without the models that are left out."""


class CompileForRun(Stage):
    """Compile the nodes that mention their run as of this one; with other SQL it begins again."""


@dataclass(frozen=True, slots=True)
class LoadSeeds(Stage):
    """Let dbt load the seeds that are rebuilt: their rows are files of the project, not SQL."""

    seeds: Mapping[str, Rebuild]


class RefreshModels(Stage):
    """Refresh every model from its start."""


class CarryModels(Stage):
    """Carry every model over from the held snapshot unchanged."""


@dataclass(frozen=True, slots=True)
class CheckModels(Stage):
    """Run the data tests of changed tables."""

    is_reported: bool = True


class EndBuild(Stage):
    """Let dbt run the hooks of on-run-end, which see the results of models and tests."""


@dataclass(frozen=True, slots=True)
class AppendSnapshot(Stage):
    """Append the snapshot row, which publishes it, unless a test holds it back."""

    appends_held: bool = True


def stages(batch: Batch) -> Iterator[Stage]:
    """Yield the stages of a batch, in order; nothing if nothing has changed."""
    frontier = batch.frontier
    if batch.kind == "build" or frontier is None:
        yield from (BuildModels(), CheckModels(), EndBuild(), AppendSnapshot())
    elif _has_changed(batch, frontier):
        if batch.run_dependent:
            yield CompileForRun()
        if seeds := {key: it for key, it in batch.rebuilds.items() if key in batch.seeds}:
            yield LoadSeeds(seeds)
        yield from (RefreshModels(), CheckModels(), AppendSnapshot())
    elif frontier.status == "held":
        # A test may be removed or edited, or read a table that no batch looks at. Each batch runs
        # it again, as a rule with the same result.
        yield from (
            CarryModels(),
            CheckModels(is_reported=False),
            AppendSnapshot(appends_held=False),
        )


def _has_changed(batch: Batch, frontier: Snapshot) -> bool:
    """Return True if models are to be refreshed, or the log names other models or tests."""
    # Rows of a held snapshot that depend on its run would carry the stamps of another one.
    is_of_a_run = frontier.status == "held" and bool(batch.run_dependent)
    return (
        batch.landed.has_records
        or batch.sources != frontier.sources
        or batch.as_of != frontier.as_of
        or bool(batch.rebuilds)
        or is_of_a_run
        or batch.starts.keys() != frontier.stored.keys() | frontier.aside.keys()
        or batch.unedited.keys() != batch.project.tests.keys()
    )
