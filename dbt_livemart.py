"""Lets plain dbt work on a livemart warehouse.

Used by dbt, which finds plugins by their name (`dbt_*`). It does nothing unless the terminal was
prepared by `eval "$(python runner.py env)"`, and nothing in a runner's own process.
"""

from __future__ import annotations

import os

from dbt.plugins.manager import dbtPlugin


class LivemartPlugin(dbtPlugin):
    """Gives dbt the Spark session of the warehouse, tables and views registered."""

    def initialize(self) -> None:
        """Prepare this dbt process; called by dbt once the project is known."""
        if "LIVEMART_DBT" not in os.environ:
            return
        from livemart.spark.terminal import prepare_dbt

        prepare_dbt(os.environ)


plugins = [LivemartPlugin]
