"""Lets plain dbt read a livemart project, and work on its warehouse.

Used by dbt, which finds plugins by their name (`dbt_*`). The macros `as_of`, `window_start` and
`pane_start` are there in every project on Spark; the warehouse is only in a terminal prepared by
`eval "$(livemart env)"`, and not in a runner's own process, which has it already.
"""

from __future__ import annotations

import os

from dbt.plugins.manager import dbtPlugin


class LivemartPlugin(dbtPlugin):
    """Gives dbt the clock's macros, and the Spark session of the terminal's warehouse."""

    def initialize(self) -> None:
        """Prepare this dbt process; called by dbt once the project is known."""
        from livemart.project.dbt_attachment import know_clock

        know_clock()
        if "LIVEMART_DBT" not in os.environ:
            return
        from livemart.spark.terminal import prepare_dbt

        prepare_dbt(os.environ)


plugins = [LivemartPlugin]
