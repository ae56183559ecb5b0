"""Opens Spark for a command, once all that it needs is there.

Used by whatever starts a process of its own on a warehouse. What is missing, and cannot be fetched,
is an error with a next step before Spark starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from livemart.spark.jars import require_jars
from livemart.spark.java import require_java
from livemart.spark.session import create_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from livemart.state.lock import WarehouseLock


class SparkSettings(Protocol):
    """The settings of a run that Spark is started with."""

    @property
    def warehouse(self) -> Path: ...
    @property
    def jars(self) -> Path | None: ...
    @property
    def master(self) -> str: ...
    @property
    def memory(self) -> str: ...


def open_session(
    settings: SparkSettings,
    extra: Mapping[str, str] | None = None,
    *,
    lock: WarehouseLock | None = None,
    jars: tuple[Path, ...] | None = None,
    is_short: bool = False,
    folder: Path | None = None,
) -> SparkSession:
    """Return this process's session on the warehouse.

    Args:
        lock: held by whoever writes; the JVM has it, too.
        jars: those of Delta, if they and Java have been checked already.
        is_short: the process ends within a minute or so.
        folder: the JVM's working folder; this process's if None.

    Raises:
        ConfigError: whatever is wrong with Java or the jars; SPARK_NOT_STARTED.
    """
    if jars is None:
        require_java()
        jars = require_jars(settings.jars)
    return create_session(
        settings.warehouse,
        jars,
        master=settings.master,
        memory=settings.memory,
        extra=extra,
        lock=lock,
        is_short=is_short,
        folder=folder,
    )
