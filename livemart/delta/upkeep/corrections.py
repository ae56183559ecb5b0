"""Commits right statistics for files of a table whose log makes readers lose rows.

Used by the warehouse for files that others wrote. Spark gives no bounds of booleans, and NaN as
one. With its bounds outside of the years 1 to 9999, deltalake's dataset does not open. Earlier
versions of livemart left out those of decimals, and let Parquet's bounds pass over NaN. No row
changes: a file is named again with right statistics, or, if the file itself misleads, written
again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from livemart.delta.log import Action, write_entry
from livemart.delta.skipping.bounds import (
    has_bounded_field,
    has_bounds,
    holds_floats,
    leaves_with_nan,
    log_statistics,
)
from livemart.delta.small_lane import partition_texts, rewritten
from livemart.delta.tags import Tag
from livemart.delta.version import DataFile, TableVersion

_APP_ID = "livemart/bounds"
_FIRST_DAY, _LAST_DAY = (pa.scalar(day, pa.date32()) for day in (date.min, date.max))


def commit_corrections(
    table: DeltaTable, files: TableVersion, *, until: float, looks_into_files: bool
) -> tuple[int, bool]:
    """Correct a table's newest version.

    Args:
        table: at its newest version.
        files: of that version.
        until: on the monotonic clock; what is left then is left.
        looks_into_files: files of earlier versions of livemart may mislead by themselves.

    Returns:
        The number of files corrected (0: nothing was committed), and whether none is left.

    Raises:
        Taken: another writer committed in between; nothing was changed.
    """
    listed = files.files()
    misleading = _misleading(table, files, listed)
    actions: list[Action] = []
    count, is_whole = 0, True
    has_floats = looks_into_files and any(holds_floats(field.type) for field in files.schema)
    for file, is_misstated in zip(listed, misleading.tolist(), strict=True):
        if not (is_misstated or has_floats):
            continue
        if time.monotonic() > until:
            is_whole = False
            break
        if has_floats and _misleads_by_itself(files, file):
            actions += rewritten(files, file, files.schema)
        elif is_misstated:
            actions.append(_named_again(files, file))
        else:
            continue
        count += 1
    if actions:
        write_entry(
            files.storage,
            files.version + 1,
            actions,
            operation="COMPUTE STATS",
            tag=Tag(_APP_ID, files.version + 1),
            metrics={"numFiles": count},
        )
    return count, is_whole


def _misleading(
    table: DeltaTable, files: TableVersion, listed: Sequence[DataFile]
) -> npt.NDArray[np.bool_]:
    """Return which listed files lack bounds that readers need beside those that they have."""
    adds = pa.table(table.get_add_actions(flatten=False)).combine_chunks()
    positions = {path: place for place, path in enumerate(adds.column("path").to_pylist())}
    order = pa.array([positions[file.path] for file in listed], pa.int64())
    adds = adds.take(order).combine_chunks()
    misleading = np.zeros(len(files), dtype=bool)
    # Without a column that could have bounds there is no field for them.
    if not len(files) or "min" not in adds.column_names:
        return misleading
    if not pa.types.is_struct(adds.column("min").type):
        return misleading
    sides = [adds.column(side).chunk(0) for side in ("min", "max")]
    counts = adds.column("null_count").chunk(0)
    for name in files.indexed:
        kind = files.schema.field(name).type
        # deltalake asks for no bounds of a column that is not among them.
        if not (has_bounds(kind) or has_bounded_field(kind)) or name not in _names(sides[0]):
            continue
        is_wrong = np.zeros(len(files), dtype=bool)
        for side in sides:
            is_wrong |= _is_no_bound(side.field(name))
        if name in _names(counts) and has_bounds(kind):
            is_void = pc.equal(counts.field(name), adds.column("num_records").chunk(0))
            is_wrong &= ~np.asarray(pc.fill_null(is_void, False))
        misleading |= is_wrong
    return np.asarray(misleading & np.asarray(sides[0].is_valid()))


def _names(struct: pa.StructArray) -> set[str]:
    return {field.name for field in struct.type}


def _is_no_bound(bounds: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which bounds other readers take for none, or fail at."""
    is_none = bounds.is_null()
    if pa.types.is_date32(bounds.type):
        is_far = pc.or_(pc.less(bounds, _FIRST_DAY), pc.greater(bounds, _LAST_DAY))
        is_none = pc.or_(is_none, pc.fill_null(is_far, False))
    if pa.types.is_floating(bounds.type):
        is_none = pc.or_(is_none, pc.fill_null(pc.is_nan(bounds), False))
    return np.asarray(is_none)


def _named_again(files: TableVersion, file: DataFile) -> Action:
    footer = files.footer(file)
    schema = pa.schema([files.schema.field(name) for name in files.indexed])
    statistics = log_statistics(
        schema,
        footer,
        lambda name: files.read_file(file, [name]).column(name),
        files.indexed,
        knows_nan=False,
    )
    return {
        "add": {
            "path": file.path,
            "partitionValues": dict(partition_texts(file)),
            "size": file.size,
            "modificationTime": int(time.time() * 1000),
            "dataChange": False,
            "stats": statistics,
        }
    }


def _misleads_by_itself(files: TableVersion, file: DataFile) -> bool:
    """Return whether Parquet's bounds pass over NaN."""
    footer = files.footer(file)
    if not footer.created_by.startswith("parquet-cpp-arrow"):
        return False
    names = [field.name for field in files.schema if holds_floats(field.type)]
    with_nan, _ = leaves_with_nan(files.read_file(file, names))
    return any(
        it.path_in_schema in with_nan and it.statistics is not None and it.statistics.has_min_max
        for it in _columns(footer)
    )


def _columns(footer: pq.FileMetaData) -> Iterator[Any]:
    for group in range(footer.num_row_groups):
        for place in range(footer.num_columns):
            yield footer.row_group(group).column(place)
