"""Defines a delivery: the input of one micro-batch, or its replay, for some source tables.

Used by landing, by the manifest that keeps deliveries, and by each kind of source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livemart.land.reasons import LetterReason


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
