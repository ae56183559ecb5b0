"""Commits the dead letters of a batch, from both lanes: one commit for each source schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import Letters
from livemart.limits import MOST_LETTERS_IN_MEMORY
from livemart.spark.large_lane import LargeLane

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LetterBox:
    """Collects dead letters and commits them: a replay finds all letters for records, or none.

    Only letters of bulk loads need Spark. `tag`: of the commit to a table of dead letters.
    """

    def __init__(
        self, spark: SparkSession, warehouse: Warehouse, tag: Callable[[str], Tag]
    ) -> None:
        self._spark = spark
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
            if sum(it.count for it in held if not it.in_memory) > MOST_LETTERS_IN_MEMORY:
                frames = [letters.frame(self._spark) for letters in held if letters.count]
                every = reduce(lambda one, other: one.unionByName(other), frames)
                LargeLane(self._spark, self._warehouse).append(relation, every, self._tag(relation))
            elif any(letters.count for letters in held):
                letters = pa.concat_tables([of_source.table() for of_source in held])
                self._warehouse.commit(relation, as_added(letters), self._tag(relation))
