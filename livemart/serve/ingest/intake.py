"""Opens the intake of records by HTTP, for the sources of the project.

Used by the server when it starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from livemart.land.group_commit import GroupCommit
from livemart.land.ingest import read_project
from livemart.land.ingested_keys import IngestedKeys
from livemart.land.sources.files.names import name_for
from livemart.project.graph import SourceTable
from livemart.project.sources import FILES_KIND
from livemart.serve.ingest.endpoint import Intake
from livemart.settings import Settings
from livemart.state.places import LocalFolder

_FORMATS = ("json", "text")


@contextmanager
def open_intake(settings: Settings) -> Iterator[Intake | None]:
    """Yield the intake of records; None if the setting `http_ingest` is off.

    Raises:
        ConfigError: whatever keeps dbt from reading the project.
    """
    if not settings.http_ingest:
        yield None
        return
    project = read_project(settings)
    sources = [source for source in project.sources.values() if takes_records(source)]
    keys = IngestedKeys(LocalFolder(settings.warehouse).ingested_keys, settings.landing)
    commit = GroupCommit(settings.landing, keys)
    try:
        yield Intake(by_names(sources), commit)
    finally:
        commit.close()


def takes_records(source: SourceTable) -> bool:
    """Return whether records can be handed over to a source line by line."""
    stream = source.stream
    if stream is None or stream.arrival.kind != FILES_KIND:
        return False
    if stream.record_rules.format not in _FORMATS:
        return False
    try:
        name_for(stream.arrival.path, "a")
    except ValueError:
        return False
    return True


def by_names(sources: list[SourceTable]) -> dict[str, SourceTable]:
    """Return the sources by each name that is one's alone."""
    # A source that is called as its schema has two names that are one.
    counts = Counter(name for source in sources for name in set(source.names))
    return {name: source for source in sources for name in source.names if counts[name] == 1}
