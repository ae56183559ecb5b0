"""Commits dead letters for whole files.

Used by each micro-batch, in separate commits. The letters for records are the same in each attempt
at a batch. A file may be emptied between two attempts, to give its records up. So letters for files
are compared with those that the table holds already.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.land.records.schema import Stamp
from livemart.land.sources.delivery import DeliveryProblem
from livemart.project.graph import SourceTable

_NAMED_BY = ["source", "origin", "reason"]


class FileLetters:
    """Collects the letters for the files of one micro-batch, and commits the new ones."""

    def __init__(self, warehouse: Warehouse, tags: Tags, stamp: Stamp) -> None:
        self._warehouse = warehouse
        self._tags = tags
        self._stamp = stamp
        self._letters: dict[str, list[pa.Table]] = {}

    def put(self, source: SourceTable, problem: DeliveryProblem) -> None:
        """Take a letter of a source that reads the file."""
        letter = dead_letters.of_file(
            source.relation, problem.origin, problem.reason, problem.detail, self._stamp
        )
        self._letters.setdefault(dead_letters.relation_of(source.schema), []).append(letter)

    def commit(self) -> None:
        """Commit the letters that no earlier attempt at the batch has committed."""
        for relation, letters in sorted(self._letters.items()):
            committed = self._committed(relation)
            fresh = [letter for letter in letters if _name(letter) not in committed]
            if fresh:
                # Each commit for a batch finds more letters than the one before.
                tag = self._tags.file_letters(relation, len(committed))
                self._warehouse.commit(relation, as_added(pa.concat_tables(fresh)), tag)

    def _committed(self, relation: str) -> set[tuple[str, ...]]:
        landed_at = pa.scalar(self._stamp.landed_at, dead_letters.LETTERS.field("landed_at").type)
        is_for_file = (
            (pc.field("batch_id") == self._stamp.batch_id)
            # Another epoch counts its batches from 0 as well.
            & (pc.field("landed_at") == landed_at)
            & pc.field("record_bytes").is_null()
        )
        letters = self._warehouse.read(relation, columns=_NAMED_BY, filter=is_for_file)
        return {tuple(letter.values()) for letter in letters.to_pylist()}


def _name(letter: pa.Table) -> tuple[str, ...]:
    return tuple(letter.select(_NAMED_BY).to_pylist()[0].values())
