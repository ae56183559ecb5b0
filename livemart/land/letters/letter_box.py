"""Commits the dead letters of a batch, from both lanes: one commit for each source schema."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import Letters, in_portions

# Guards memory: those of a large delivery are written file by file.
_FILE_BYTES = 64 << 20


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
