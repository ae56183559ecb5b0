"""Gives a plain dbt in a prepared terminal its session, lock and catalog, when it first needs them.

Used by the dbt plugin `dbt_livemart`. A command that sends no statement takes no lock and starts no
Spark; where a runner lives, dbt joins it.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from livemart.project.dbt_attachment import attach, is_attached
from livemart.settings import Settings
from livemart.spark.connect import connect_url, join
from livemart.state.lock import hold_warehouse, runner_lives, who_holds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Set by `env`: settings of this terminal, its warehouse and how Spark is started on it, as JSON.
TERMINAL = "LIVEMART_DBT"


def prepare_dbt(environ: Mapping[str, str]) -> None:
    """Let the dbt of this process work on the warehouse of its terminal, if that was prepared.

    Commands that send no statement (parse, list, deps) take no lock and start no Spark.
    """
    if TERMINAL not in environ or is_attached():
        # The latter in a runner's own process, which has its session already.
        return
    terminal = Terminal(Settings(**json.loads(environ[TERMINAL])))
    attach(terminal.session, terminal.warehouse)
    atexit.register(terminal.close)


class Terminal:
    """The one session of a dbt process: its own Spark, or that of the runner that lives."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.warehouse = settings.warehouse
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    def session(self) -> SparkSession:
        """Return the session, made at the first call.

        Raises:
            StateError: RUNNER_LIVES, if a runner holds the warehouse and its Spark cannot be
            joined.
        """
        with self._lock:
            if self._session is None:
                self._session = self._joined() or self._start_spark()
            return self._session

    def close(self) -> None:
        """End the session and give the warehouse free."""
        self._stack.close()

    def _joined(self) -> SparkSession | None:
        holder = who_holds(self.warehouse)
        if holder is None:
            return None
        url = connect_url(self.warehouse, holder)
        if url is None:
            raise runner_lives(self.warehouse)
        os.environ["SPARK_REMOTE"] = url
        session = join(url, self.warehouse, holder)
        self._stack.callback(session.stop)
        return session

    def _start_spark(self) -> SparkSession:
        from livemart.spark.catalog import register, save_views
        from livemart.spark.session import open_session

        lock = self._stack.enter_context(hold_warehouse(self.warehouse))
        session = open_session(self._settings, lock=lock)
        self._stack.callback(session.stop)
        register(session, self.warehouse)
        self._stack.callback(save_views, session, self.warehouse)
        return session
