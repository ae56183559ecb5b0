"""Defines a delivery: the input of one micro-batch, or its replay, for some source tables.

Used by landing, by the manifest that keeps deliveries, and by each kind of source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from livemart.land.reasons import LetterReason
from livemart.land.records.worker import Part


@dataclass(frozen=True, slots=True)
class Delivery:
    """The records that a micro-batch reads for source tables that read the same."""

    kind: str
    """The kind of source."""
    relations: tuple[str, ...]
    """The tables that read it."""
    receipt: Mapping[str, Any]
    """JSON by which the kind finds the very same records again in a replay."""
    delivered_at: datetime | None = None
    """When its oldest record came, UTC; None if unknown."""


@dataclass(frozen=True, slots=True)
class DeliveryProblem:
    """A fault of a whole file, or a range of a log, and not of one record.

    `origin`: which; `reason`: of the dead letter.
    """

    origin: str
    reason: LetterReason
    detail: str


class DeliveryReader(Protocol):
    """Reads deliveries of one kind of source."""

    kind: str

    def check(self, delivery: Delivery, batch_id: int) -> Delivery:
        """Return the delivery that a replay reads; refuse one whose records have changed.

        Raises:
            SourceError: with what is to be done.
        """
        ...

    def size(self, delivery: Delivery) -> int:
        """Return about how many bytes its records are."""
        ...

    def problems(self, delivery: Delivery) -> Sequence[DeliveryProblem]:
        """Return its parts that cannot be read, or were not read."""
        ...

    def parts(self, delivery: Delivery, record_format: str) -> Sequence[Part]:
        """Return its parts to read."""
        ...
