"""Corrects the entries for files in the tables' logs, for readers that are not livemart's.

Used after a micro-batch: at once for the tables that Spark wrote in it, and once a day for all. The
files of a table that an earlier version of livemart wrote are read once.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime

import structlog

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, first_lines

# For how long a micro-batch is followed by corrections, and by a first look into all files.
_CORRECTION_S = 10.0
_LOOK_S = 60.0


def correct_files(
    tables: Warehouse,
    relations: Collection[str],
    *,
    seconds: float = _CORRECTION_S,
    looks_into_files: bool = False,
) -> set[str]:
    """Correct the entries for files in the logs of tables; return the tables that are right.

    Args:
        tables: a micro-batch has just been published.
        relations: the tables to look at.
        seconds: for how long; the rest is done the next time.
        looks_into_files: corrects files of earlier versions, too, by what Parquet itself holds.
    """
    until, counts, done = time.monotonic() + seconds, dict[str, int](), set[str]()
    for relation in sorted(relations):
        try:
            counts[relation], is_whole = tables.correct(
                relation,
                seconds=until - time.monotonic(),
                looks_into_files=looks_into_files,
            )
        except Exception as error:
            # No fault of this costs a micro-batch.
            structlog.get_logger().warning(
                "bounds_not_corrected",
                table=relation,
                error=first_lines(error),
                hint="readers that are not livemart's may pass over rows of it; tried again "
                "tomorrow",
            )
            continue
        if is_whole:
            done.add(relation)
    # Spark's commits need this each time: that is no news for the log.
    if looks_into_files and (files := sum(counts.values())):
        corrected = [relation for relation, count in counts.items() if count]
        structlog.get_logger().info("bounds_corrected", tables=corrected, files=files)
    return done


def look_into_tables(
    tables: Warehouse, now: datetime, noted: Mapping[str, datetime]
) -> dict[str, datetime]:
    """Correct the files of all tables; return when each was first looked into, by its id.

    Args:
        tables: all of the warehouse.
        now: the wall clock, UTC.
        noted: what this returned before; those tables are not looked into again.
    """
    ids: dict[str, str] = {}
    for relation in tables.relations():
        with suppress(LivemartError):
            ids[relation] = tables.table_id(relation)
    old = {relation for relation, table_id in ids.items() if table_id in noted}
    correct_files(tables, old)
    looked_into = correct_files(tables, ids.keys() - old, seconds=_LOOK_S, looks_into_files=True)
    return {ids[key]: noted[ids[key]] for key in old} | {ids[key]: now for key in looked_into}
