"""Holds dead letters of one source until they are committed: as rows, or in files.

Used by a change of a landed table, whichever way it was decided, by the letter box and by the stop
for drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq

from livemart.land.letters.dead_letters import LETTERS
from livemart.land.reasons import LetterReason
from livemart.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Letters(Protocol):
    """Dead letters in the columns of `LETTERS`. `in_memory`: they are held by this process."""

    @property
    def count(self) -> int: ...
    @property
    def in_memory(self) -> bool: ...
    def of(self, reason: LetterReason) -> Letters:
        """Return those of one reason."""
        ...

    def first(self) -> tuple[str, str]:
        """Return origin and detail of one of them; there is one."""
        ...

    def table(self) -> pa.Table:
        """Return them as rows."""
        ...

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return them as a frame."""
        ...


@dataclass(frozen=True, slots=True)
class RowLetters:
    """Letters of a batch that the driver has decided."""

    in_memory: ClassVar[bool] = True

    rows: pa.Table

    @property
    def count(self) -> int:
        return int(self.rows.num_rows)

    def of(self, reason: LetterReason) -> RowLetters:
        return RowLetters(self.rows.filter(pc.equal(self.rows.column("reason"), reason)))

    def first(self) -> tuple[str, str]:
        letter = self.rows.slice(0, 1).to_pylist()[0]
        return letter["origin"], letter["detail"]

    def table(self) -> pa.Table:
        return self.rows

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows.to_pylist(), spark_schema(LETTERS))


@dataclass(frozen=True, slots=True)
class StagedLetters:
    """Letters of a delivery that memory need not hold, in Parquet files below a folder.

    The files are those of its portions (see `add`), or of Spark's workers.

    `reason`: of those that are meant, None for all.
    """

    in_memory: ClassVar[bool] = False

    folder: Path
    reason: LetterReason | None = None

    def add(self, letters: pa.Table) -> None:
        """Take the letters of a portion."""
        if letters.num_rows:
            self.folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(letters, self.folder / f"{len(self._files):08}.parquet")

    @property
    def count(self) -> int:
        return int(self._stored.count_rows(filter=self._condition))

    def of(self, reason: LetterReason) -> StagedLetters:
        return StagedLetters(self.folder, reason)

    def first(self) -> tuple[str, str]:
        letter = self._stored.head(1, filter=self._condition).to_pylist()[0]
        return letter["origin"], letter["detail"]

    def table(self) -> pa.Table:
        return self._stored.to_table(filter=self._condition)

    def frame(self, spark: SparkSession) -> DataFrame:
        letters = spark.read.schema(spark_schema(LETTERS)).parquet(str(self.folder))
        return letters if self.reason is None else letters.where(f"reason = '{self.reason}'")

    @property
    def _condition(self) -> pds.Expression | None:
        return None if self.reason is None else pds.field("reason") == self.reason

    @property
    def _stored(self) -> pds.Dataset:
        files = self._files
        # A dataset of no files has no schema.
        return pds.dataset(files, schema=LETTERS) if files else pds.dataset(LETTERS.empty_table())

    @property
    def _files(self) -> list[str]:
        """The files, of portions in their order."""
        return sorted(map(str, self.folder.glob("*.parquet")))
