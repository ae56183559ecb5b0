"""Names the transactions under which tables are committed, each once per batch.

Used by landing, refresh and the committers. Delta keeps, for each application id, the newest
version that was committed under it; a commit whose version is not above it is skipped. So an
application id names what is committed, and the version is the batch id: a replay of the batch finds
its commit there.

    epoch/relation/GENERATION       rows of a model, or of a landed table (generation 0)
    epoch/relation/columns          columns that a landed table gains
    epoch/relation/drift            dead letters of a stop for drift
    epoch/relation/drift/withdrawn  the same, taken back when the batch lands after all
    epoch/relation/files/COUNT      dead letters for whole files, COUNT of them there before

A commit of a model's rows also says how they came about and how many changed, so that a batch that
begins again can tell it. It says which versions they were computed from, too: if the batch reads
others by then, the rows are computed again.

A new checkpoint has a new epoch, since its batches count from 0 again. A rebuilt model has a new
generation, since the batch that rebuilds it may have written its table before. (The snapshot log is
one table for all epochs and names its own, `epoch/snapshots`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# Facts in the commit of a model: how it was refreshed, why in full, and the count of
# `Commit.rows_changed`, unless all rows of its table were replaced. The last one is the versions
# that it was computed from, by relation, as JSON.
STRATEGY, REASON, ROWS_CHANGED, READ = "strategy", "reason", "rows_changed", "read"


@dataclass(frozen=True, slots=True)
class Tag:
    """The identity of a commit, application id and version, and its metadata.

    The first two are what a commit is known by; whatever else it says, it is the same tag.
    """

    app_id: str
    version: int
    metadata: Mapping[str, str] = field(default_factory=dict, compare=False)

    def with_metadata(self, metadata: Mapping[str, str]) -> Tag:
        """Return the tag of the same commit that says more of itself."""
        return replace(self, metadata={**self.metadata, **metadata})

    def moved_by(self, strategy: str, reason: str | None = None) -> Tag:
        """Return the tag of a commit that says by which strategy a model was refreshed, and why."""
        return self.with_metadata({STRATEGY: strategy} | ({REASON: reason} if reason else {}))

    def counting(self, rows_changed: int) -> Tag:
        """Return the tag of a commit that says how many rows it changes, of a model alone."""
        is_of_model = STRATEGY in self.metadata
        return self.with_metadata({ROWS_CHANGED: str(rows_changed)}) if is_of_model else self


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one batch of one epoch."""

    epoch: str
    batch_id: int

    def rows(self, relation: str, generation: int = 0, fingerprint: str | None = None) -> Tag:
        """Return the tag of the rows of a landed table (generation 0) or of a model."""
        metadata = {"batch_id": str(self.batch_id), "relation": relation}
        if fingerprint:
            metadata["fingerprint"] = fingerprint
        return self._tag(relation, str(generation), metadata)

    def columns(self, relation: str) -> Tag:
        """Return the tag of a commit that adds columns to a landed table."""
        return self._tag(relation, "columns")

    def drift(self, source: str) -> Tag:
        """Return the tag of the dead letters that say why a source stopped its batch."""
        return self._tag(source, "drift")

    def drift_withdrawn(self, source: str) -> Tag:
        """Return the tag of the commit that takes those letters back."""
        return self._tag(source, "drift/withdrawn")

    def file_letters(self, relation: str, count: int) -> Tag:
        """Return the tag of letters for whole files, where the table holds `count` of the batch.

        A replay may find other reasons, so each commit of a batch has its own id.
        """
        return self._tag(relation, f"files/{count}")

    def generation_of(self, relation: str, transactions: Mapping[str, int]) -> int | None:
        """Return the generation for which a commit of this batch was made, None for any other.

        Args:
            transactions: version by application id, as the commit names them.
        """
        prefix = _prefix(self.epoch, relation)
        for app_id, version in transactions.items():
            if app_id.startswith(prefix) and version == self.batch_id:
                return int(app_id.removeprefix(prefix))
        return None

    def _tag(self, relation: str, suffix: str, metadata: Mapping[str, str] | None = None) -> Tag:
        return Tag(_prefix(self.epoch, relation) + suffix, self.batch_id, metadata or {})


def is_of_epoch(epoch: str, relation: str, transactions: Mapping[str, int]) -> bool:
    """Return True if a commit to a table was made under the epoch, in whatever batch."""
    return any(app_id.startswith(_prefix(epoch, relation)) for app_id in transactions)


def _prefix(epoch: str, relation: str) -> str:
    return f"{epoch}/{relation}/"
