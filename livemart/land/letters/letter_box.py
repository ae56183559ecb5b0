"""The dead letters for records of a batch, from both lanes: one commit for each source schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.arrow.types import plain_table
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.spark.large_lane import LargeLane

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# More of them than this are written by Spark.
_MAX_LETTERS = 100_000


class LetterBox:
    """Collects dead letters and commits them: a replay finds all letters for records, or none.

    Args:
        spark: the session; only letters of bulk loads need it.
        warehouse: the tables.
        tag: tag of the commit to a table of dead letters.
    """

    def __init__(
        self, spark: SparkSession, warehouse: Warehouse, tag: Callable[[str], Tag]
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._tag = tag
        self._small: dict[str, list[pa.Table]] = {}
        self._large: dict[str, list[tuple[DataFrame, int]]] = {}

    def put(self, schema: str, letters: pa.Table) -> None:
        """Take letters of a source of `schema`."""
        if letters.num_rows:
            self._small.setdefault(schema.lower(), []).append(letters)

    def put_frame(self, schema: str, letters: DataFrame, count: int) -> None:
        """Take `count` letters of a bulk load."""
        if count:
            self._large.setdefault(schema.lower(), []).append((letters, count))

    def commit(self) -> None:
        """Commit what was put in."""
        for schema in sorted({*self._small, *self._large}):
            relation = dead_letters.relation_of(schema)
            small = self._small.get(schema, [])
            large = self._large.get(schema, [])
            if sum(count for _, count in large) > _MAX_LETTERS:
                frames = [frame for frame, _ in large]
                frames += self._as_frames(small, frames[0])
                every = reduce(lambda one, other: one.unionByName(other), frames)
                LargeLane(self._spark, self._warehouse).append(relation, every, self._tag(relation))
            else:
                tables = [*small, *(plain_table(frame.toArrow()) for frame, _ in large)]
                letters = pa.concat_tables([table.cast(dead_letters.LETTERS) for table in tables])
                self._warehouse.commit(relation, as_added(letters), self._tag(relation))

    def _as_frames(self, tables: list[pa.Table], like: DataFrame) -> list[DataFrame]:
        rows = [row for table in tables for row in table.to_pylist()]
        return [self._spark.createDataFrame(rows, like.schema)] if rows else []
