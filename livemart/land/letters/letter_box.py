"""Commits the dead letters of a batch: for records, for whole files, and for drift that stops it.

Used by each micro-batch, in both lanes. The letters for records are the same in each attempt at a
batch, so those of a source schema are one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.change_sets import as_added, as_removed
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import Letters, in_portions
from livemart.land.reasons import LetterReason
from livemart.land.records.schema import Stamp
from livemart.land.sources.delivery import DeliveryProblem
from livemart.project.graph import SourceTable

# Guards memory: those of a large delivery are written file by file.
_FILE_BYTES = 64 << 20
_NAMED_BY = ["source", "origin", "reason"]
_DRIFTED = LetterReason.SCHEMA_DRIFT


class LetterBox:
    """Collects dead letters and commits them: a replay finds all letters for records, or none.

    `tag`: of the commit to a table of dead letters.
    """

    def __init__(self, warehouse: Warehouse, tag: Callable[[str], Tag]) -> None:
        self._warehouse = warehouse
        self._tag = tag
        self._letters: dict[str, list[Letters]] = {}

    def put(self, schema: str, letters: Letters) -> None:
        """Take letters of a source of `schema`."""
        self._letters.setdefault(schema.lower(), []).append(letters)

    def commit(self) -> None:
        """Commit the letters that were put in."""
        for schema, held in sorted(self._letters.items()):
            relation = dead_letters.relation_of(schema)
            tag = self._tag(relation)
            if self._warehouse.is_tagged(relation, tag):
                continue
            written = []
            try:
                batches = chain.from_iterable(letters.batches() for letters in held)
                tables = (pa.Table.from_batches([batch]) for batch in batches)
                for rows in in_portions(tables, _FILE_BYTES):
                    written += self._warehouse.write(relation, rows)
            except BaseException:
                self._warehouse.discard(relation, written)
                raise
            # A commit that fails late, or whose answer is lost, names the files all the same.
            none = as_added(dead_letters.LETTERS.empty_table())
            self._warehouse.commit(relation, none, tag, written=written)


class FileLetters:
    """Collects the letters for the files of one micro-batch, and commits the new ones.

    A file may be emptied between two attempts at a batch, to give its records up. So these letters
    are compared with those that the table holds already.
    """

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


class DriftStop:
    """Stops a micro-batch for records that a source with `schema_drift: fail` may not take.

    The letters of a stop say why until the batch lands after all. They have a separate commit:
    those of the batch come when it lands.
    """

    def __init__(self, warehouse: Warehouse, tags: Tags) -> None:
        self._warehouse = warehouse
        self._tags = tags

    def check(self, source: SourceTable, letters: Letters) -> None:
        """Stop if some of a source's letters are for drift.

        Raises:
            SourceError: SCHEMA_DRIFT.
        """
        drifted = letters.of(_DRIFTED)
        if not drifted.count:
            return
        box = LetterBox(self._warehouse, lambda _: self._tags.drift(source.relation))
        box.put(source.schema, drifted)
        box.commit()
        origin, detail = drifted.first()
        raise SourceError(
            "SCHEMA_DRIFT",
            f"{source.relation}: {origin}: {detail}",
            hint="declare them under `columns`, or set schema_drift to rescue or evolve",
        )

    def withdraw(self, sources: Sequence[SourceTable]) -> None:
        """Take back the letters of earlier stops: their records land now, or get other letters."""
        for source in sources:
            table, tag = dead_letters.relation_of(source.schema), self._tags.drift(source.relation)
            if not self._warehouse.is_tagged(table, tag):
                continue
            is_of_stop = (
                (pc.field("batch_id") == self._tags.batch_id)
                & (pc.field("reason") == _DRIFTED)
                & (pc.field("source") == source.relation)
            )
            letters = self._warehouse.read(table, filter=is_of_stop)
            withdrawn = self._tags.drift_withdrawn(source.relation)
            self._warehouse.commit(table, as_removed(letters), withdrawn)
