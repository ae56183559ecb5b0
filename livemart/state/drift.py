"""Says how records differ from the columns that their source declares, field by field.

Landing sees it, the snapshot log keeps it, the log events of a run and `status` tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class DriftKind(StrEnum):
    """In which way a field differs; docs/landing.md has these words."""

    ADDED = "added"
    CASE_CHANGED = "case-changed"
    NESTED = "nested"
    MISSING = "missing"
    INCOMPATIBLE = "incompatible"
    WIDER = "wider"
    UNDECLARED = "undeclared"

    @property
    def next_step(self) -> str:
        """Return the next step of the analyst."""
        return _NEXT_STEPS[self]


_NEXT_STEPS: Mapping[DriftKind, str] = {
    DriftKind.ADDED: "kept in _rescued_data: declare it under `columns`, if a model needs it",
    DriftKind.CASE_CHANGED: (
        "kept in _rescued_data, and the column is NULL: let the records spell it as the column, "
        "or read it from _rescued_data"
    ),
    DriftKind.NESTED: "kept in _rescued_data: declare it inside the struct, if a model needs it",
    DriftKind.MISSING: (
        "no record has a value where most had one: ask who writes them; a new name of the field "
        "is a column to declare"
    ),
    DriftKind.INCOMPATIBLE: (
        "the records are dead letters: correct the program that writes them, or declare another "
        "type in a column of another name"
    ),
    DriftKind.WIDER: (
        "the records are dead letters: declare the wider type, then `livemart dead-letters redrive "
        "--reason TYPE_MISMATCH`"
    ),
    DriftKind.UNDECLARED: (
        "the table has the column: declare it under `columns`, and select it where it is needed"
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class DriftedField:
    """One difference."""

    kind: DriftKind
    name: str
    """The column or the field, with its path."""
    note: str = ""
    """More that is known of it, such as a type."""
    unused_by: tuple[str, ...] = ()
    """For an undeclared column: the models that read the source and not this column."""

    def __str__(self) -> str:
        noted = f"{self.name} ({self.note})" if self.note else self.name
        return f"{noted}, unused by {' '.join(self.unused_by)}" if self.unused_by else noted


# The differences of one source, sorted, each once.
Drift = tuple[DriftedField, ...]


def merge_drift(drifts: Iterable[Mapping[str, Drift]]) -> dict[str, Drift]:
    """Return the drift of several times as one, by relation."""
    fields: dict[str, set[DriftedField]] = {}
    for drift in drifts:
        for relation, of_source in drift.items():
            fields.setdefault(relation, set()).update(of_source)
    return {relation: tuple(sorted(fields[relation])) for relation in sorted(fields)}


def by_kind(drift: Drift) -> Iterator[tuple[DriftKind, Drift]]:
    """Yield the fields of each kind together."""
    for kind, fields in groupby(sorted(drift), key=lambda field: field.kind):
        yield kind, tuple(fields)


def describe_drift(relation: str, kind: DriftKind, fields: Drift) -> str:
    """Return a line without the next step: `drift bronze.orders: added tip; who`."""
    return f"drift {relation}: {kind} {'; '.join(map(str, fields))}"
