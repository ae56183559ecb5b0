"""Gives the net change of a table between two versions.

Used by refresh, checks and publication. It is what the small lane just wrote, else what the log and
the change feed say of each commit, with copies that came and went netted out.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT, net_rows
from livemart.arrow.variants import nothing_of
from livemart.delta.cache import SizedTables
from livemart.delta.log import Action, LogFile
from livemart.delta.open_tables import OpenTables
from livemart.delta.parquet import TooManyRowsError, read_change_file
from livemart.delta.table_schema import OnlySparkError
from livemart.errors import RefreshError, first_lines
from livemart.limits import MOST_CHANGED_ROWS

# For each table: a reader is one snapshot behind, which is one or two commits.
_CACHED_VERSIONS = 16
# The rows of a change file that are there behind the change.
_CAME = ["insert", "update_postimage"]


class NetChanges:
    """Net changes by commit, the newest of them kept in memory, up to a number of bytes."""

    def __init__(self, tables: OpenTables, most_bytes: int = 256 << 20) -> None:
        self._tables = tables
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._changes = SizedTables[LogFile]()
        self._newest: dict[str, deque[LogFile]] = {}
        self._too_large: set[LogFile] = set()

    def keep(self, relation: str, version: int, change: pa.Table) -> None:
        """Keep the net change of a commit, of the form that `between` returns."""
        file = self._tables.log_file(relation, version)
        if file is None:
            return
        with self._lock:
            self._changes.take(file)
            self._changes.add(file, change)
            # Counted, not by version: commits of others come between, and are not kept.
            newest = self._newest.setdefault(relation, deque())
            newest.append(file)
            if len(newest) > _CACHED_VERSIONS:
                self._changes.take(newest.popleft())
            self._changes.shrink(self._most_bytes)

    def between(
        self, relation: str, schema: pa.Schema, from_version: int, to_version: int
    ) -> pa.Table:
        """Return the net change between two versions.

        Args:
            relation: `schema.identifier`.
            schema: plain schema at `to_version`.
            to_version: where it ends, not below `from_version`.

        Returns:
            Columns of `schema` plus `WEIGHT` (bigint, never 0); key: all columns; one row for each
            row that is there more or less often.

        Raises:
            RefreshError: CDF_UNAVAILABLE, if the rows are too many to be held in memory, too.
        """
        if from_version > to_version:
            raise changes_unavailable(
                relation, from_version, f"the table is at version {to_version}"
            )
        pieces, count = [], 0
        for version in range(from_version + 1, to_version + 1):
            file = self._tables.log_file(relation, version)
            with self._lock:
                cached = None if file is None else self._changes.get(file)
                is_too_large = file in self._too_large
            fits = cached is not None and cached.drop_columns([WEIGHT]).schema.equals(schema)
            piece = cached if fits else None
            if piece is None and not is_too_large:
                piece = _logged_change(self._tables, relation, version, schema)
            if piece is None:
                if file is not None:
                    # Each reader of the table asks for it.
                    self._too_large.add(file)
                raise _too_large(relation, version)
            pieces.append(piece)
            count += piece.num_rows
            if count > MOST_CHANGED_ROWS:
                raise _too_large(relation, version)
        if len(pieces) == 1:
            return pieces[0]
        stacked = pa.concat_tables(pieces) if pieces else _nothing(schema)
        stacked = stacked.combine_chunks()
        return net_rows(stacked.select(schema.names), stacked.column(WEIGHT))


def _too_large(relation: str, version: int) -> RefreshError:
    reason = f"they are more than {MOST_CHANGED_ROWS:,} rows"
    return changes_unavailable(relation, version, reason)


def _logged_change(
    tables: OpenTables, relation: str, version: int, schema: pa.Schema
) -> pa.Table | None:
    """Read the net change of one commit from its change files, or from the files it swapped.

    Returns:
        As `between`; None if these hold more rows than are held in memory.
    """
    table, entry = tables.storage(relation), tables.entry(relation, version)
    if entry is None:
        raise changes_unavailable(relation, version, "its log entry was removed")
    # The files of a change that Spark wrote say of each row whether it came or went.
    files: list[tuple[int, Action]] = [(0, action) for action in entry.cdc] or [
        *((1, action) for action in entry.adds),
        *((-1, action) for action in entry.removes),
    ]
    # Mostly the log says so, before any file is opened.
    if sum(_row_count(action) for sign, action in files if sign) > MOST_CHANGED_ROWS:
        return None
    wide = schema.append(pa.field("_change_type", pa.string()))
    pieces: list[pa.Table] = []
    signs: list[pa.Array] = []
    room = MOST_CHANGED_ROWS
    try:
        for sign, action in files:
            if sign and not action.get("dataChange", True):
                continue
            if sign and action.get("deletionVector") is not None:
                raise changes_unavailable(relation, version, "deletion vectors")
            rows = read_change_file(table, action, schema if sign else wide, most_rows=room)
            room -= rows.num_rows
            if sign:
                signs.append(pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows))
            else:
                came = pc.is_in(rows.column("_change_type"), pa.array(_CAME))
                signs.append(pc.if_else(came, 1, -1).combine_chunks())
                rows = rows.drop_columns(["_change_type"])
            pieces.append(rows)
    except TooManyRowsError:
        return None
    except (FileNotFoundError, OnlySparkError) as error:
        raise changes_unavailable(relation, version, first_lines(error)) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise changes_unavailable(relation, version, f"its schema differs ({error})") from error
    if not pieces:
        return _nothing(schema)
    weights = pa.chunked_array([sign.cast(pa.int64()) for sign in signs])
    return net_rows(pa.concat_tables(pieces).combine_chunks(), weights)


def _row_count(action: Action) -> int:
    """Return how many rows that changed a file has by the log; 0 if it does not say."""
    stats = action.get("stats") if action.get("dataChange", True) else None
    with suppress(ValueError):
        return int(json.loads(stats).get("numRecords") or 0) if stats else 0
    return 0


def _nothing(schema: pa.Schema) -> pa.Table:
    return net_rows(nothing_of(schema), pa.array([], pa.int64()))


def changes_unavailable(relation: str, version: int, reason: str) -> RefreshError:
    """Return the error for a change that cannot be read."""
    return RefreshError(
        "CDF_UNAVAILABLE",
        f"{relation}: the changes of version {version} cannot be read: {reason}",
        hint="the models that read the table are rebuilt; run build if they are not",
    )
