"""What one micro-batch works with: handed from the pipeline to refresh and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.settings import Settings
from livemart.state.snapshots import ModelState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Why a model cannot start from the frontier, and the generation its next table belongs to.

    `code` is NEW_MODEL, FINGERPRINT_CHANGED, CHANGED_OUTSIDE or SELECTED.
    """

    code: str
    message: str
    generation: int


@dataclass(frozen=True, slots=True)
class BatchContext:
    """Session, tables and identity of the micro-batch `batch_id` of `epoch`.

    `rebuilds`: by unique id, the models to recompute in full whatever their plan allows.
    `fingerprints`: of the models' SQL, by relation; kept with each commit.
    `done`: models that are at this batch already (seeds that dbt loaded again).
    `report` is called with a model's unique id and a word when its refresh starts and ends.
    """

    spark: SparkSession
    warehouse: Warehouse
    settings: Settings
    epoch: str
    batch_id: int
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    done: Mapping[str, ModelState] = field(default_factory=dict)
    report: Callable[[str, str], None] = lambda unique_id, word: None

    def tag(self, relation: str, generation: int) -> Tag:
        """Return the transaction id under which `relation` is committed in this batch, once."""
        tags = Tags(self.epoch, self.batch_id)
        return tags.rows(relation, generation, self.fingerprints.get(relation))
