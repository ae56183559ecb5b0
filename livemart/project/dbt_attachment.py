"""Gives the dbt-spark of this process our connections, our macros and every compile error.

Used by `Dbt` for one invocation at a time, and for good by plain dbt in another terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from livemart.project.cursors import Connection, SessionFactory, SparkCursor

MACROS = Path(__file__).with_name("spark_macros")
_PACKAGE = "livemart_spark"
_WAREHOUSE = "LIVEMART_WAREHOUSE"  # read by the macros


@contextmanager
def attached(connection: Connection, warehouse: Path | None) -> Iterator[None]:
    """Let dbt-spark open `connection`, know livemart's macros, and report every compile error."""
    from dbt.adapters.spark import session as spark_session
    from dbt.task.compile import CompileTask

    _know_macros()
    before = os.environ.get(_WAREHOUSE)
    if warehouse is not None:
        os.environ[_WAREHOUSE] = str(warehouse)
    try:
        with (
            _replaced(spark_session, "Connection", connection),
            _replaced(CompileTask, "raise_on_first_error", lambda task: False),
        ):
            yield
    finally:
        if before is not None:
            os.environ[_WAREHOUSE] = before
        else:
            os.environ.pop(_WAREHOUSE, None)


def attach(session: SessionFactory, warehouse: Path) -> None:
    """Let the dbt of this process work on `warehouse` through `session`, for good."""
    from dbt.adapters.spark import session as spark_session
    from dbt_common.context import get_invocation_context

    _know_macros()
    # dbt has copied the environment before it calls a plugin.
    environment: Any = get_invocation_context().env
    environment[_WAREHOUSE] = str(warehouse)
    module: Any = spark_session
    module.Connection = Connection(lambda parameters: SparkCursor(session, parameters))


def is_attached() -> bool:
    """Return True if the dbt of this process opens livemart's connections already."""
    from dbt.adapters.spark import session as spark_session

    return isinstance(spark_session.Connection, Connection)


def _know_macros() -> None:
    """Add livemart's macros to those that come with dbt, once."""
    from dbt.adapters.factory import FACTORY

    factory: Any = FACTORY
    if _PACKAGE in factory.packages:
        return
    factory.packages[_PACKAGE] = MACROS
    names = factory.get_adapter_package_names
    # The first of dbt's internal packages wins; the project's own macros beat them all.
    factory.get_adapter_package_names = lambda name: [_PACKAGE, *names(name)]


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
