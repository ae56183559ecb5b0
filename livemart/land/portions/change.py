"""Computes in the driver the changes of a large delivery to a table, a portion at a time.

Used by micro-batches that are more than memory should hold, on machines of few cores. Rows go to
files of the table as soon as they are decided; one commit names them all, or none.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.change_sets import as_removed
from livemart.delta.log import Action
from livemart.delta.tags import Tag
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.seen_drift import Sightings, sightings_in
from livemart.land.portions.key_order import KeyOrder
from livemart.land.upsert.change import BatchSource, SourceChange
from livemart.state.counts import Counts
from livemart.state.drift import Drift

# Rows of some 200 bytes each, beside the stored rows of their keys.
RANGE_ROWS = 100_000
# Stored rows that others replace are held until the commit; with more of them Spark lands.
MOST_REPLACED = 500_000


class TooManyReplacedError(Exception):
    """More stored rows are replaced than memory should hold; nothing was committed."""


class PortionedChange:
    """The change that the records of one source make in its tables.

    It answers as `SourceChange` does for a small batch. `take` each portion, then `decide`. Records
    that wait to be decided are in `folder`, which the caller removes.
    """

    def __init__(self, of_source: BatchSource, folder: Path) -> None:
        self.counts = Counts()
        self.newest_event_time: datetime | None = None
        self._of_source = of_source
        self._source = of_source.source
        self._warehouse = of_source.before.warehouse
        self._sightings = Sightings()
        self._waiting = KeyOrder(folder / "rows", self._source.row_rules.keys, RANGE_ROWS)
        self.letters = Letters(folder / "letters")
        self._written: list[Action] = []
        self._replaced: list[pa.Table] = []
        self._deletes: list[pa.Table] = []

    def take(self, judged: pa.Table) -> None:
        """Take the next judged records, in file and line order."""
        source, records = self._source, self._of_source.taken(judged)
        position = self._of_source.position
        self._sightings += sightings_in(judged, position, records.live, source)
        if source.row_rules.keys:
            letters, passed_over = records.letters, records.passed_over
            self.letters.add(letters)
            refused = letters.num_rows
            self.counts += Counts(refused + passed_over, 0, passed_over, refused)
            self._waiting.add(records.good)
        else:
            self._add(self._of_source.decided(records))

    def decide(self) -> None:
        """Decide the records that have keys; all have been taken.

        Raises:
            TooManyReplacedError: more rows of the table would be replaced than a commit may name.
        """
        for good in self._waiting.ranges():
            self._add(self._of_source.decided(self._of_source.taken(good)))
            if sum(rows.num_rows for rows in self._replaced) > MOST_REPLACED:
                raise TooManyReplacedError

    @property
    def drift(self) -> Drift:
        return self._of_source.drift(self._sightings)

    def _add(self, change: SourceChange) -> None:
        rows = change.landed
        is_new = pc.greater(rows.column(NEW_COUNT), 0)
        added = rows.filter(is_new).drop_columns([OLD_COUNT, NEW_COUNT])
        self._written += self._warehouse.write(
            self._source.relation, added, key=self._source.row_rules.keys
        )
        replaced = rows.filter(pc.invert(is_new))
        if replaced.num_rows:
            self._replaced.append(replaced)
        if change.deletes is not None and change.deletes.num_rows:
            self._deletes.append(change.deletes)
        self.letters.add(change.letters.table())
        self.counts += change.counts
        moments = [it for it in (self.newest_event_time, change.newest_event_time) if it]
        self.newest_event_time = max(moments, default=None)

    @property
    def deletes(self) -> pa.Table | None:
        return pa.concat_tables(self._deletes) if self._deletes else None

    def commit(self, tag: Tag) -> None:
        relation = self._source.relation
        nothing = as_removed(self._warehouse.arrow_schema(relation).empty_table())
        # Stored rows may be from before a column was added.
        replaced = pa.concat_tables([nothing, *self._replaced], promote_options="default")
        keys = self._source.row_rules.keys
        # A commit that fails late, or whose answer is lost, names the files all the same.
        written, self._written = self._written, []
        self._warehouse.commit(relation, replaced, tag, key=keys, written=written)

    def discard(self) -> None:
        """Remove the files that were written, unless a commit was tried."""
        self._warehouse.discard(self._source.relation, self._written)
        self._written = []
