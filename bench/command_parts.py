"""Times the parts of a start, each alone, in a process: imports, dbt, JVM, Spark, a first query.

Used by `bench.command`, a process a round. A command does some of them at once, on two cores, so
that its start takes less than their sum. One JSON object on standard output, seconds by part.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar
from unittest import mock

_Result = TypeVar("_Result")


def main(arguments: Sequence[str]) -> None:
    """Time the parts on a project and a warehouse, which are named in this order."""
    seconds: dict[str, float] = {}

    def timed(name: str, part: Callable[[], _Result]) -> _Result:
        began = time.monotonic()
        try:
            return part()
        finally:
            seconds[name] = time.monotonic() - began

    timed("imports", _import)
    from pyspark import java_gateway

    from livemart.run.runtime import open_dbt
    from livemart.settings import load_settings
    from livemart.spark.session import open_session

    project_dir, warehouse = arguments
    settings = load_settings({"project_dir": project_dir, "warehouse": warehouse}, environ={})
    # Most of it is dbt's own imports, and the project as it was parsed before.
    timed("dbt", lambda: open_dbt(settings, _no_spark).load())
    launch = java_gateway.launch_gateway

    def launched(*given: Any, **named: Any) -> Any:
        return timed("jvm", lambda: launch(*given, **named))  # type: ignore[no-untyped-call]

    with mock.patch.object(java_gateway, "launch_gateway", launched):
        spark = timed("spark", lambda: open_session(settings, is_short=True))
    seconds["spark"] -= seconds["jvm"]
    statement = "select id % 2 as half, sum(id) as total from range(10) group by 1"
    timed("query", lambda: spark.sql(statement).toArrow())
    spark.stop()
    print(json.dumps(seconds))


def _no_spark() -> Any:
    raise AssertionError("no model of the project asks the warehouse")


def _import() -> None:
    """Import what a refresh needs before it begins; dbt's own imports are of its part."""
    for name in ("livemart.cli.commands", "livemart.run.pipeline", "pyspark.sql"):
        import_module(name)


if __name__ == "__main__":
    main(sys.argv[1:])
