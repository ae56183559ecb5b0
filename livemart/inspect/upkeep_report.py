"""Reports how many old files of tables were removed, for the command `maintain`."""

from __future__ import annotations

from collections.abc import Sequence

from livemart.inspect.terminal_text import counted
from livemart.run.upkeep import RemovedFiles


def render_removed(removed: Sequence[RemovedFiles], *, is_trial: bool) -> str:
    """Return a line for each table that had old files, and one for all.

    Args:
        removed: of each table.
        is_trial: nothing was removed.
    """
    verb = "would remove" if is_trial else "removed"
    lines = []
    for table in removed:
        if table.count:
            lines.append(f"{table.table}: {verb} {_size(table.count, table.size_bytes)}")
        if table.error is not None:
            lines.append(f"{table.table}: could not remove its old files: {table.error}")
    tables, count = counted(len(removed), "table"), sum(table.count for table in removed)
    if count:
        total = _size(count, sum(table.size_bytes for table in removed))
        return "\n".join([*lines, f"{tables}: {verb} {total}"])
    return "\n".join([*lines, f"{tables}: no file is old enough to be removed"])


def _size(count: int, size_bytes: int) -> str:
    return f"{counted(count, 'file')}, {size_bytes / 1e6:,.1f} MB"
