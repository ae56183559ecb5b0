"""Holds dead letters of one source until they are committed: as rows, or in files.

Used by a change of a landed table, whichever way it was decided, by the letter box and by the stop
for drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq

from livemart.land.letters.dead_letters import LETTERS
from livemart.land.reasons import LetterReason
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters in the columns of `LETTERS`.

    `held`: their rows, if the driver has decided the batch at once. Memory need not hold those of a
    large delivery: then it is the folder of Parquet files of the delivery's portions (see `add`),
    or of Spark's workers. `reason`: of those that are meant, None for all.
    """

    held: pa.Table | StoragePlace
    reason: LetterReason | None = None

    def add(self, letters: pa.Table) -> None:
        """Take the letters of a portion into the folder, which is one of this machine."""
        assert isinstance(self.held, Path)
        if letters.num_rows:
            self.held.mkdir(parents=True, exist_ok=True)
            pq.write_table(letters, self.held / f"{len(self._files):08}.parquet")

    @property
    def count(self) -> int:
        return int(self._stored.count_rows(filter=self._condition))

    def of(self, reason: LetterReason) -> Letters:
        """Return those of one reason."""
        return replace(self, reason=reason)

    def first(self) -> tuple[str, str]:
        """Return origin and detail of one of them; there is one."""
        letter = self._stored.head(1, filter=self._condition).to_pylist()[0]
        return letter["origin"], letter["detail"]

    def table(self) -> pa.Table:
        """Return them as rows."""
        return self._stored.to_table(filter=self._condition)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield them, a part at a time; nothing if there are none."""
        batches = self._stored.to_batches(filter=self._condition)
        return (batch for batch in batches if batch.num_rows)

    @property
    def _condition(self) -> pds.Expression | None:
        return None if self.reason is None else pds.field("reason") == self.reason

    @property
    def _stored(self) -> pds.Dataset:
        if isinstance(self.held, pa.Table):
            return pds.dataset(self.held)
        # A dataset of no files has no schema.
        if not (files := self._files):
            return pds.dataset(LETTERS.empty_table())
        filesystem = open_storage(self.held).filesystem()
        return pds.dataset(files, schema=LETTERS, filesystem=filesystem)

    @property
    def _files(self) -> list[str]:
        """The files of the folder, those of portions in their order."""
        return [name for name in open_storage(self.held).names() if name.endswith(".parquet")]


def in_portions(tables: Iterable[pa.Table], most_bytes: int) -> Iterator[pa.Table]:
    """Yield all rows, put together to tables of about so many bytes as memory should hold."""
    portion: list[pa.Table] = []
    size = 0
    for table in tables:
        portion.append(table)
        size += table.nbytes
        if size >= most_bytes:
            yield pa.concat_tables(portion)
            portion, size = [], 0
    if portion:
        yield pa.concat_tables(portion)
