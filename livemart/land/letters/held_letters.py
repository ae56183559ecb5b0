"""Holds dead letters of one source until they are committed: as rows, or as a frame of Spark's.

Used by a change of a landed table, whichever way it was decided, by the letter box and by the stop
for drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.types import plain_table
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

    rows: pa.Table

    @property
    def count(self) -> int:
        return int(self.rows.num_rows)

    @property
    def in_memory(self) -> bool:
        return True

    def of(self, reason: LetterReason) -> RowLetters:
        return RowLetters(self.rows.filter(pc.equal(self.rows.column("reason"), reason)))

    def first(self) -> tuple[str, str]:
        letter = self.rows.slice(0, 1).to_pylist()[0]
        return letter["origin"], letter["detail"]

    def table(self) -> pa.Table:
        return self.rows

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows.to_pylist(), spark_schema(LETTERS))


@dataclass(frozen=True)
class FrameLetters:
    """Letters of a bulk load. `known`: how many they are, None if they are to be counted."""

    letters: DataFrame
    known: int | None = None

    @cached_property
    def count(self) -> int:
        return self.letters.count() if self.known is None else self.known

    @property
    def in_memory(self) -> bool:
        return False

    def of(self, reason: LetterReason) -> FrameLetters:
        return FrameLetters(self.letters.where(f"reason = '{reason}'"))

    def first(self) -> tuple[str, str]:
        letter = self.letters.select("origin", "detail").head(1)[0]
        return letter.origin, letter.detail

    def table(self) -> pa.Table:
        return plain_table(self.letters.toArrow()).cast(LETTERS)

    def frame(self, spark: SparkSession) -> DataFrame:
        return self.letters
