"""Says how many old files of tables have gone, for the command `maintain`."""

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
    for it in removed:
        if it.count:
            lines.append(f"{it.table}: {verb} {_size(it.count, it.size_bytes)}")
        if it.error is not None:
            lines.append(f"{it.table}: could not remove its old files: {it.error}")
    tables, count = counted(len(removed), "table"), sum(it.count for it in removed)
    if count:
        total = _size(count, sum(it.size_bytes for it in removed))
        return "\n".join([*lines, f"{tables}: {verb} {total}"])
    return "\n".join([*lines, f"{tables}: no file is old enough to be removed"])


def _size(count: int, size_bytes: int) -> str:
    return f"{counted(count, 'file')}, {size_bytes / 1e6:,.1f} MB"
