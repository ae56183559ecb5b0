"""Gives the dbt-spark of this process our connections, our macros and every compile error.

Used by `Dbt` for one invocation at a time, and for good by plain dbt in another terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from livemart.project.cursors import Connection, SessionFactory, SparkCursor

MACROS = Path(__file__).with_name("spark_macros")
_PACKAGE = "livemart_spark"
_WAREHOUSE = "LIVEMART_WAREHOUSE"  # read by the macros


@contextmanager
def attached(
    connection: Connection,
    warehouse: Path | None,
    before_compile: Callable[[Any], None] | None = None,
) -> Iterator[None]:
    """Let dbt-spark open `connection`, know livemart's macros, and report every compile error.

    Args:
        connection: is opened for every node.
        warehouse: root of all tables.
        before_compile: is called with dbt's task before the first node is compiled.
    """
    from dbt.adapters.spark import session as spark_session
    from dbt.task.compile import CompileTask

    _know_macros()
    before = os.environ.get(_WAREHOUSE)
    if warehouse is not None:
        os.environ[_WAREHOUSE] = str(warehouse)
    try:
        with ExitStack() as stack:
            stack.enter_context(_replaced(spark_session, "Connection", connection))
            stack.enter_context(_replaced(CompileTask, "raise_on_first_error", lambda task: False))
            if before_compile is not None:
                stack.enter_context(_called_before(CompileTask, before_compile))
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


def current_node() -> str | None:
    """Return the unique id of the node that dbt runs in this thread, None if it is none."""
    from dbt_common.events.contextvars import get_node_info

    node: str | None = get_node_info().get("unique_id")
    return node


@contextmanager
def _called_before(kind: Any, action: Callable[[Any], None]) -> Iterator[None]:
    """Let tasks of a kind call something before their first node, with a connection."""
    before_run = kind.before_run

    def run(task: Any, adapter: Any, selected: Any) -> Any:
        status = before_run(task, adapter, selected)
        with adapter.connection_named("master"):
            action(task)
        return status

    with _replaced(kind, "before_run", run):
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
