"""Lists the steps of a micro-batch.

Used by `BatchRunner`, which runs one step after the other; each returns the batch that the next
one starts from. The list is made once the batch is drafted: only then are the changes known.
Nothing here reads a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from livemart.check.checks import TestResult
from livemart.land.landing import LandedBatch
from livemart.project.graph import Project
from livemart.refresh.frontier import Rebuild, Start
from livemart.state.snapshots import Kind, Snapshot


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch: its inputs, the starts of its models, and the results of its steps."""

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
        return {key: start for key, start in self.starts.items() if isinstance(start, Rebuild)}

    @property
    def changed_seeds(self) -> dict[str, Rebuild]:
        """The seeds that are rebuilt, by unique id."""
        return {key: start for key, start in self.rebuilds.items() if key in self.seeds}


class BatchStep(Enum):
    """A step of a micro-batch, in the words of the debug log."""

    BUILD_MODELS = "let dbt build the models that are not left out"
    COMPILE_FOR_RUN = "compile the nodes that mention their run"
    """With other SQL the batch begins again."""
    LOAD_SEEDS = "let dbt load the seeds that changed"
    """Their rows are files of the project, not SQL."""
    REFRESH_MODELS = "refresh every model from its start"
    CARRY_MODELS = "carry the models over from the held snapshot"
    CHECK_MODELS = "run the data tests of changed tables"
    CHECK_HELD = "run the data tests that hold the snapshot back again"
    """Not reported: each batch has this step, as a rule with the same result."""
    END_BUILD = "let dbt run the hooks of on-run-end"
    """They see the results of models and tests."""
    APPEND_SNAPSHOT = "append the snapshot, which a failed test holds back"
    RELEASE_SNAPSHOT = "append the snapshot if no test holds it back any more"


def batch_steps(batch: Batch) -> Iterator[BatchStep]:
    """Yield the steps of a batch, in order; nothing if nothing has changed."""
    frontier = batch.frontier
    if batch.kind == "build" or frontier is None:
        yield from (BatchStep.BUILD_MODELS, BatchStep.CHECK_MODELS, BatchStep.END_BUILD)
        yield BatchStep.APPEND_SNAPSHOT
    elif _has_changed(batch, frontier):
        if batch.run_dependent:
            yield BatchStep.COMPILE_FOR_RUN
        if batch.changed_seeds:
            yield BatchStep.LOAD_SEEDS
        yield from (BatchStep.REFRESH_MODELS, BatchStep.CHECK_MODELS, BatchStep.APPEND_SNAPSHOT)
    elif frontier.status == "held":
        # A test may be removed or edited, or read a table that no batch looks at.
        yield from (BatchStep.CARRY_MODELS, BatchStep.CHECK_HELD, BatchStep.RELEASE_SNAPSHOT)


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
