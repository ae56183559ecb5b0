"""Stops a batch for drift; dead letters say why until it lands after all."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from livemart.arrow.change_sets import as_removed
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land.letters import dead_letters
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.letter_box import LetterBox
from livemart.land.reasons import LetterReason
from livemart.project.graph import SourceTable

_DRIFTED = LetterReason.SCHEMA_DRIFT


class DriftStop:
    """Stops a micro-batch for records that a source with `schema_drift: fail` may not take.

    The letters of a stop have a separate commit: those of the batch come when it lands.
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
