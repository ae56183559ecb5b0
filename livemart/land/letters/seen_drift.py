"""Says how the records of one source in a batch differ from its columns.

Used by a change of a landed table, whichever way it was decided. It looks at what was rescued, at
why values were refused, and at columns without any value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from livemart.delta.version import TableVersion
from livemart.land.letters.drift import rescued_fields
from livemart.land.reasons import LetterReason
from livemart.land.records.judge import verdict
from livemart.land.records.untyped_values import DOES_NOT_FIT, WIDER, first_name, name_in_path
from livemart.project.graph import SourceTable
from livemart.spark_sql import stored_name
from livemart.state.drift import Drift, DriftedField, DriftKind

# For each kind; records may spell a thousand names.
MOST_FIELDS = 20
_MOST_CHARACTERS = 100
# A column is missing if so many records without a value are less likely than this by chance.
_UNLIKELY = 1e-6
# In the detail of a refused value, the value is between the path and the type; both Arrow and Spark
# replace it.
REFUSED_VALUE = rf"^(.*?): .*{DOES_NOT_FIT}"
WITHOUT_VALUE = DOES_NOT_FIT


@dataclass(frozen=True, slots=True)
class Sightings:
    """The drift that a batch shows."""

    rescued: Iterable[str] = ()
    """Paths of rescued fields."""
    misfits: Iterable[str] = ()
    """Details of refused values, the value left out."""
    records: int = 0
    """The number of records that could have filled the columns."""
    filled: Mapping[str, int] = field(default_factory=dict)
    """The number of records that did, by column."""

    def __add__(self, other: Sightings) -> Sightings:
        """Return the drift that two parts of a batch show."""
        names = dict.fromkeys((*self.filled, *other.filled))
        return Sightings(
            {*self.rescued, *other.rescued},
            {*self.misfits, *other.misfits},
            self.records + other.records,
            {name: self.filled.get(name, 0) + other.filled.get(name, 0) for name in names},
        )


def sightings_in(judged: pa.Table, position: int, rows: pa.Table, source: SourceTable) -> Sightings:
    """Return the drift that judged records show.

    Args:
        judged: records of a group; fields that became columns are rescued no more.
        position: of the source in the group.
        rows: those that it takes, without deletes.
        source: the source.
    """
    is_misfit = pc.equal(judged.column(verdict("code", position)), LetterReason.TYPE_MISMATCH)
    details = judged.column(verdict("detail", position)).filter(is_misfit)
    shapes = pc.replace_substring_regex(details, REFUSED_VALUE, rf"\1{WITHOUT_VALUE}")
    names = [column.name for column in source.columns]
    filled = {name: rows.num_rows - rows.column(name).null_count for name in names}
    return Sightings(rescued_fields(judged), pc.unique(shapes).to_pylist(), rows.num_rows, filled)


def seen_drift(sightings: Sightings, before: TableVersion, columns: Sequence[str]) -> Drift:
    """Return how a batch differs from the table before it; `columns` are those that it has now."""
    fields = {_rescued(path, columns) for path in sightings.rescued}
    fields |= {misfit for detail in sightings.misfits if (misfit := _misfit(detail)) is not None}
    added = [field.name for field in fields if field.kind is DriftKind.ADDED]
    missing = list(_missing(sightings, before))
    # One name for another: most likely the same field.
    note = f"renamed to {added[0]}?" if len(added) == len(missing) == 1 else ""
    fields |= {DriftedField(DriftKind.MISSING, name, note) for name in missing}
    return tuple(sorted(_limited(sorted(fields))))


def _rescued(path: str, columns: Sequence[str]) -> DriftedField:
    name = first_name(path)
    if path != name_in_path(name) and name in columns:
        # The elements of a list have one type.
        return DriftedField(DriftKind.NESTED, _short(re.sub(r"\[[0-9]+\]", "[]", path)))
    column = stored_name(name, columns)
    if column is not None and column != name:
        return DriftedField(DriftKind.CASE_CHANGED, _short(path), f"the column is {_short(column)}")
    return DriftedField(DriftKind.ADDED, _short(path))


def _misfit(detail: str) -> DriftedField | None:
    path, is_misfit, why = detail.partition(WITHOUT_VALUE)
    if not is_misfit:
        return None
    kind, _, wider = why.partition(WIDER)
    name = _short(re.sub(r"\[[0-9]+\]", "[]", path))
    if wider:
        return DriftedField(DriftKind.WIDER, name, f"than {_short(kind)}: declare {wider}")
    return DriftedField(DriftKind.INCOMPATIBLE, name, f"with {_short(kind)}")


def _missing(sightings: Sightings, before: TableVersion) -> Iterator[str]:
    """Yield the columns without a value of which the table shows that they should have some."""
    for name, count in sightings.filled.items():
        if not count and sightings.records:
            share = before.null_share(name)
            if share is not None and share**sightings.records < _UNLIKELY:
                yield name


def _limited(fields: Sequence[DriftedField]) -> Iterator[DriftedField]:
    for kind in DriftKind:
        of_kind = [field for field in fields if field.kind is kind]
        yield from of_kind[:MOST_FIELDS]
        if len(of_kind) > MOST_FIELDS:
            # Behind the names, in whatever order.
            yield DriftedField(kind, f"… and {len(of_kind) - MOST_FIELDS:,} more")


def _short(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[:_MOST_CHARACTERS]}..."
