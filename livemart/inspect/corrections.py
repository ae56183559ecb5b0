"""Lists the late corrections of windows that were final: which, how late, and the changed rows.

Used by the command `corrections`. A model that says of its rows whether they are final (the macro
`is_final`) is compared from snapshot to snapshot; nothing is kept for it but the tables' history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

from livemart.arrow.bags import WEIGHT
from livemart.arrow.python_rows import python_rows
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.inspect.terminal_text import aligned, counted
from livemart.intervals import format_interval
from livemart.land.letters.plain_text import one_line
from livemart.plan.plan import FinalFlag
from livemart.plan.stored_queries import StoredQuery
from livemart.project.graph import Project
from livemart.run.lateness import instant_of
from livemart.run.watermarks import read_watermarks
from livemart.state.snapshots import Snapshot

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Correction:
    """One row that a snapshot changed though it was final in the one before."""

    model: str
    snapshot_id: int
    corrected_at: datetime
    window_end: datetime | None
    """None if the model does not show the end of its windows."""
    late_by: timedelta | None
    """How far the watermark had passed the end of the window; None without one."""
    key: _Row
    old: _Row | None
    """None for a row that came."""
    new: _Row | None
    """None for a row that went."""

    @property
    def changes(self) -> Mapping[str, tuple[Any, Any]]:
        """The columns that changed, with the value before and after; key columns left out."""
        old, new = self.old or {}, self.new or {}
        return {
            name: (old.get(name), new.get(name))
            for name in dict.fromkeys((*old, *new))
            # To Python -0.0 is 0.0, and NaN no NaN.
            if name not in self.key and repr(old.get(name)) != repr(new.get(name))
        }


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections, the newest first."""

    rows: tuple[Correction, ...]
    flagged: int
    """The number of models that say whether their rows are final."""
    unknown: Mapping[str, tuple[int, ...]]
    """The snapshots whose changes are no longer kept, by model."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as the command prints it; times and values as text."""
        return {
            "corrections": [
                {
                    "model": row.model,
                    "snapshot": row.snapshot_id,
                    "corrected_at": row.corrected_at.isoformat(),
                    "window_end": row.window_end and row.window_end.isoformat(),
                    "late_by_s": row.late_by and row.late_by.total_seconds(),
                    "key": {name: _text(value) for name, value in row.key.items()},
                    "changes": {
                        name: [_text(before), _text(after)]
                        for name, (before, after) in row.changes.items()
                    },
                }
                for row in self.rows
            ],
            "not_kept": {name: list(snapshots) for name, snapshots in self.unknown.items()},
        }


def find_corrections(
    warehouse: Warehouse,
    project: Project,
    stored: Mapping[str, StoredQuery],
    snapshots: Sequence[Snapshot],
    selected: frozenset[str] | None = None,
) -> Corrections:
    """Return the corrections that these snapshots made.

    Args:
        stored: the queries of the project, by unique id.
        snapshots: the newest first, as the log gives them.
        selected: unique ids of the models to look at; all if None.
    """
    rows: list[Correction] = []
    unknown: dict[str, tuple[int, ...]] = {}
    marks = project.watermarks
    flags = {
        unique_id: flag
        for unique_id, query in stored.items()
        if not query.is_stage
        and (flag := query.plan.final_flag) is not None
        and marks is not None
        and flag.relation == marks.relation
        and (selected is None or unique_id in selected)
    }
    for after, before in pairwise(snapshots):
        for unique_id, flag in flags.items():
            old, new = before.models.get(unique_id), after.models.get(unique_id)
            if old is None or new is None or before.epoch != after.epoch:
                continue
            if old.version == new.version or old.generation != new.generation:
                continue
            query, name = stored[unique_id], stored[unique_id].owner.name
            try:
                mark = read_watermarks(warehouse, flag.relation, before.sources[flag.relation])
                change = warehouse.changes(query.relation, old.version, new.version)
                # A plan has names in lower case.
                names = {column.lower(): column for column in change.column_names}
                if flag.column not in names:
                    # No row was final before the model said so.
                    continue
                key = [names[column] for column in query.plan.unique_key]
            except (RefreshError, KeyError):
                unknown[name] = (*unknown.get(name, ()), after.snapshot_id)
                continue
            of_table = replace(flag, column=names[flag.column], time=names.get(flag.time or ""))
            passed = mark.get(flag.watermark.lower())
            rows += _corrected(name, after, of_table, key, passed, python_rows(change))
    return Corrections(tuple(rows), len(flags), unknown)


def render_corrections(corrections: Corrections) -> str:
    """Return the corrections as lines for a terminal."""
    lines: list[str] = []
    if not corrections.flagged:
        lines.append(
            "no model says whether its rows are final: add a column "
            "{{ is_final('window_end') }}, see docs/refresh.md, Provisional and final windows"
        )
    elif not corrections.rows:
        lines.append("no final window was corrected")
    if corrections.rows:
        head = ("model", "window end", "late by", "corrected", "snapshot", "key", "changes")
        lines += aligned([head, *(_cells(row) for row in corrections.rows)])
        late = [row.late_by for row in corrections.rows if row.late_by is not None]
        if late:
            lines.append(
                f"the latest came {format_interval(max(late))} after the watermark: a lateness "
                "longer by so much would have waited for it"
            )
    for name, snapshots in corrections.unknown.items():
        lines.append(
            f"{name}: the changes of {counted(len(snapshots), 'snapshot')} are no longer kept "
            f"({min(snapshots)} to {max(snapshots)})"
        )
    return "\n".join(lines)


def _corrected(
    model: str,
    snapshot: Snapshot,
    flag: FinalFlag,
    key: Sequence[str],
    passed: datetime | None,
    changed: Sequence[_Row],
) -> Iterator[Correction]:
    names = [name for name in key if name != flag.column]

    def identity(row: _Row) -> tuple[Any, ...]:
        # Without a key all columns identify a row. As text, since lists cannot be hashed, and NaN
        # is not equal to itself.
        return tuple(repr(row[name]) for name in names or _values(row))

    def correction(old: _Row | None, new: _Row | None) -> Correction:
        row = old or new or {}
        end = _end(row, flag)
        late_by = passed - end if passed is not None and end is not None else None
        return Correction(
            model,
            snapshot.snapshot_id,
            snapshot.finished_at,
            end,
            late_by,
            {name: row[name] for name in names},
            _values(old),
            _values(new),
        )

    removed: dict[tuple[Any, ...], list[_Row]] = {}
    for row in changed:
        if row[WEIGHT] < 0:
            removed.setdefault(identity(row), []).append(row)
    for row in changed:
        if row[WEIGHT] < 0:
            continue
        before = removed.pop(identity(row), [None])[0]
        end = _end(row, flag)
        is_late = end is not None and passed is not None and end <= passed
        if before[flag.column] if before is not None else is_late:
            yield correction(before, row)
    for rows in removed.values():
        for row in rows:
            if row[flag.column]:
                yield correction(row, None)


def _end(row: _Row, flag: FinalFlag) -> datetime | None:
    """Return the end of a row's window; None if it has none, or in a year that Python lacks."""
    end = row.get(flag.time) if flag.time else None
    return instant_of(end) if isinstance(end, date) else None


def _values(row: _Row | None) -> Any:
    return None if row is None else {name: row[name] for name in row if name != WEIGHT}


def _cells(row: Correction) -> tuple[str, ...]:
    is_new, is_gone = row.old is None, row.new is None
    changes = ", ".join(
        f"{name} {_text(after if is_new else before)}"
        if is_new or is_gone
        else f"{name} {_text(before)} -> {_text(after)}"
        for name, (before, after) in row.changes.items()
    )
    verb = "came: " if is_new else "went: " if is_gone else ""
    return (
        row.model,
        "-" if row.window_end is None else f"{row.window_end:%Y-%m-%d %H:%M:%S}",
        "-" if row.late_by is None else format_interval(row.late_by),
        f"{row.corrected_at:%Y-%m-%d %H:%M:%S}",
        str(row.snapshot_id),
        one_line(", ".join(f"{name}={_text(value)}" for name, value in row.key.items())),
        one_line(verb + changes),
    )


def _text(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)
