"""Compares the rows of two snapshots, model by model.

Used by the command `diff`. Reading starts no Spark and takes no lock. Rows are compared bit for
bit, as a refresh does: what a commit has changed is what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT, difference
from livemart.arrow.python_rows import python_rows
from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, RefreshError, StateError, first_lines, nearest
from livemart.inspect.comparison import EXAMPLES
from livemart.inspect.published_tables import own_table_name, tables_by_id
from livemart.land.letters.plain_text import one_line
from livemart.project.graph import short_name
from livemart.state.snapshots import ModelState, Snapshot
from livemart.storage.location import StoragePlace

# The log of so many commits is read for their changes.
_NEAR = 100


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that one snapshot has `count` times more than the other; values as text."""

    snapshot_id: int
    count: int
    row: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ModelDiff:
    """The rows of a model that only one of two snapshots has, repeats counted."""

    model: str
    only_in_first: int = 0
    only_in_second: int = 0
    examples: tuple[DifferingRow, ...] = ()
    """Up to 20 of the rows."""
    note: str = ""
    """Why it could not be compared, or why it need not be; empty if it was."""
    is_compared: bool = True

    @property
    def is_different(self) -> bool:
        """True if rows are known to differ."""
        return self.only_in_first + self.only_in_second > 0


def diff_snapshots(
    warehouse: StoragePlace, first: Snapshot, second: Snapshot, chosen: str | None = None
) -> Iterator[ModelDiff]:
    """Yield the differences, a model of either snapshot at a time, by unique id.

    Args:
        warehouse: root of all tables.
        first, second: in any order of time.
        chosen: unique id or name of the one model to compare; all if None.

    Raises:
        StateError: MODEL_NOT_IN_SNAPSHOTS.
    """
    tables = Warehouse(warehouse)
    relations = tables_by_id(tables)
    names = sorted(first.models.keys() | second.models.keys())
    if chosen is not None:
        named = [name for name in names if chosen in (name, short_name(name))]
        if not named:
            raise StateError(
                "MODEL_NOT_IN_SNAPSHOTS",
                f"snapshots {first.snapshot_id} and {second.snapshot_id}: found no model {chosen}"
                + nearest(chosen, map(short_name, names)),
                hint="`livemart history` names the models of a snapshot",
            )
        names = named
    for name in names:
        before, after = first.models.get(name), second.models.get(name)
        try:
            change = _change(tables, relations, name, before, after)
        except (LivemartError, ValueError) as error:
            yield ModelDiff(name, note=first_lines(error), is_compared=False)
            continue
        yield _diff(name, change, first.snapshot_id, second.snapshot_id)


def diff_exit_code(diffs: Sequence[ModelDiff]) -> int:
    """Return 1 if a model differs, 3 if none does and one could not be compared, else 0."""
    if any(diff.is_different for diff in diffs):
        return 1
    return 0 if all(diff.is_compared for diff in diffs) else 3


def render_diff(diff: ModelDiff, first: int, second: int) -> str:
    """Return a line for a model, and below it up to 20 of the rows that differ."""
    if not diff.is_compared:
        return f"{diff.model}  NOT COMPARED  ({diff.note})"
    if not diff.is_different:
        return f"{diff.model}  equal"
    counts = ((diff.only_in_first, first), (diff.only_in_second, second))
    words = [f"{count:,} only in {snapshot_id}" for count, snapshot_id in counts if count]
    lines = [f"{diff.model}  DIFFERENT  {', '.join(words)}"]
    for example in diff.examples:
        values = ", ".join(f"{name}={value}" for name, value in example.row.items())
        lines.append(f"  only in {example.snapshot_id} ({example.count}x): {values}")
    hidden = diff.only_in_first + diff.only_in_second - sum(row.count for row in diff.examples)
    if hidden > 0:
        lines.append(f"  and {hidden:,} more")
    return "\n".join(lines)


def _change(
    tables: Warehouse,
    relations: Mapping[str, Sequence[str]],
    name: str,
    before: ModelState | None,
    after: ModelState | None,
) -> pa.Table | None:
    """Return the rows that came and went, with `WEIGHT`, below zero for those that went.

    None if the model has the same version of the same table in both. For two versions of a table
    only the changes are read, or the files that one of them does not have.

    Raises:
        LivemartError: a version or its table is gone.
        ValueError: the two have other columns.
    """
    is_one_table = before is not None and after is not None and before.table_id == after.table_id
    if before is not None and after is not None and is_one_table:
        if before.version == after.version:
            return None
        low, high = sorted((before.version, after.version))
        # Files of changes may be gone while those of both versions are kept.
        if high - low <= _NEAR:
            with suppress(RefreshError):
                change = tables.changes(_relation(relations, name, after), low, high)
                is_forward = before.version == low
                return change if is_forward else _weighted(change, pc.negate(change.column(WEIGHT)))
    sides = [
        None
        if state is None
        else tables.rows_apart(
            _relation(relations, name, state),
            state.version,
            other.version if other is not None and is_one_table else None,
        )
        for state, other in ((before, after), (after, before))
    ]
    nothing = next(rows for rows in sides if rows is not None).slice(0, 0)
    old, new = (nothing if rows is None else rows for rows in sides)
    if not old.schema.equals(new.schema):
        names = [set(map(str, rows.schema)) for rows in (old, new)]
        raise ValueError(f"its columns differ: {', '.join(sorted(names[0] ^ names[1]))}")
    rows = difference(new, old)
    return _weighted(rows, pc.subtract(rows.column(NEW_COUNT), rows.column(OLD_COUNT)))


def _weighted(rows: pa.Table, weights: pa.ChunkedArray) -> pa.Table:
    names = [name for name in rows.column_names if name not in (WEIGHT, OLD_COUNT, NEW_COUNT)]
    return rows.select(names).append_column(WEIGHT, weights)


def _relation(relations: Mapping[str, Sequence[str]], name: str, state: ModelState) -> str:
    """Return the table of a model; of copied folders that which bears its name."""
    of_table = relations.get(state.table_id, ())
    if not of_table:
        raise RefreshError(
            "TABLE_MISSING",
            f"{name}: the table that held its rows was recreated or dropped",
            hint="compare later snapshots",
        )
    return min(of_table, key=lambda relation: relation.rpartition(".")[2] != own_table_name(name))


def _diff(name: str, change: pa.Table | None, first: int, second: int) -> ModelDiff:
    if change is None:
        return ModelDiff(name)
    weights = change.column(WEIGHT).to_pylist()
    columns = [column for column in change.column_names if column != WEIGHT]
    examples = tuple(
        DifferingRow(
            second if weight > 0 else first,
            abs(weight),
            {key: None if value is None else one_line(str(value)) for key, value in row.items()},
        )
        for weight, row in zip(
            weights, python_rows(change.select(columns).slice(0, EXAMPLES)), strict=False
        )
    )
    fewer, more = (sum(max(sign * weight, 0) for weight in weights) for sign in (-1, 1))
    return ModelDiff(name, fewer, more, examples)
