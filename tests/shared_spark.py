"""The one Spark session of all tests that run Spark in their own process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.project.sessions import _SESSIONS
from livemart.settings import Settings
from livemart.spark.quick_session import _CLONES
from livemart.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SharedSpark:
    """A session that each test gets as it was when it had just started."""

    def __init__(self, folder: Path) -> None:
        self.session = open_session(Settings(warehouse=folder, master="local[2]", memory="2g"))
        self._settings: dict[str, str] = dict(self.session.conf.getAll)

    def emptied(self) -> SparkSession:
        """Return the session with nothing left of earlier tests: tables, views, settings."""
        session = self.session
        empty_catalog(session)
        for table in session.catalog.listTables():
            if table.isTemporary:
                session.catalog.dropTempView(table.name)
        for name, value in dict(session.conf.getAll).items():
            if name not in self._settings:
                session.conf.unset(name)
            elif value != self._settings[name]:
                session.conf.set(name, self._settings[name])
        for name in self._settings.keys() - dict(session.conf.getAll).keys():
            session.conf.set(name, self._settings[name])
        # It knows the settings and views of when it was made.
        _CLONES.pop(session, None)
        # Those of other projects.
        _SESSIONS.pop(session, None)
        # Delta keeps a snapshot of every table that it has seen for an hour, a plan of megabytes
        # each. A table that is put back in its place differs from the one that it remembers.
        jvm: Any = session._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        return session


def empty_catalog(spark: SparkSession) -> None:
    """Drop every database. Spark removes its folder with it: that of a warehouse, too."""
    for (name,) in spark.sql("show databases").collect():
        if name != "default":
            spark.sql(f"drop database `{name}` cascade")
