"""Makes the sessions in which a project's SQL has its meaning, one for each spec.

Used by the engine for every statement of a model or a test, and by `Dbt` for every node. All share
tables and caches; none shares settings, temporary views or functions with another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from livemart.errors import ConfigError, first_lines
from livemart.project.session_spec import PLAIN, SessionSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_SESSIONS: WeakKeyDictionary[SparkSession, dict[SessionSpec, SparkSession]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def session_of(spark: SparkSession, spec: SessionSpec) -> SparkSession:
    """Return the session for statements with a spec beside `spark`, made at first use.

    Raises:
        PySparkException: a statement of the spec fails; it is run again at the next call.
    """
    if spec.is_plain:
        return spark
    with _LOCK:
        sessions = _SESSIONS.setdefault(spark, {})
        if spec not in sessions:
            sessions[spec] = new_session(spark, spec)
        return sessions[spec]


def keep_sessions(spark: SparkSession, specs: Iterable[SessionSpec]) -> None:
    """Forget the sessions beside `spark` that belong to other specs than these."""
    needed = set(specs)
    with _LOCK:
        sessions = _SESSIONS.get(spark, {})
        for spec in sessions.keys() - needed:
            del sessions[spec]


def new_session(spark: SparkSession, spec: SessionSpec) -> SparkSession:
    """Return a session beside `spark` in which a spec holds."""
    session = spark.newSession()
    set_all(session, dict(spec.settings))
    run_statements(session, spec.statements, dict(spec.settings))
    return session


def run_statements(
    session: SparkSession, statements: Iterable[str], settings: Mapping[str, str]
) -> None:
    """Run defining statements; the profile's settings hold after each of them."""
    for statement in statements:
        session.sql(statement)
        set_all(session, settings)


def set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set the settings that a session that has started still takes.

    The rest counts when Spark starts, if at all: dbt-spark passes over it, too.

    Raises:
        ConfigError: SESSION_SETTING_REFUSED, naming setting and value.
    """
    from pyspark.errors import PySparkException

    for name, value in settings.items():
        if session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            if not (error.getCondition() or "").startswith("CANNOT_MODIFY"):
                raise ConfigError(
                    "SESSION_SETTING_REFUSED",
                    f"profiles.yml: server_side_parameters: {name}: found {value}: "
                    f"{first_lines(error)}",
                    hint="write a value that Spark takes, or leave the setting out",
                ) from error


def is_utc(session: SparkSession) -> bool:
    """Return True if times of a session are those of UTC, as the engine itself counts them."""
    return session.conf.get(_ZONE, None) in ("UTC", "Etc/UTC", "Z", "GMT")


@dataclass(eq=False)
class NodeSessions:
    """The sessions of one dbt invocation, each made at the first statement of a node that needs it.

    Args:
        session: gives the engine's session.
        node: the unique id of the node that runs in this thread, None if it is none.
        specs: of each node, by unique id, as it is before the hooks that dbt runs for it.
        alone: nodes whose hooks cannot be run twice in one session.
        begun: what has already been run in the session of all other nodes by dbt itself.
    """

    session: Callable[[], SparkSession]
    node: Callable[[], str | None] = lambda: None
    specs: Mapping[str, SessionSpec] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    begun: SessionSpec = PLAIN

    def __post_init__(self) -> None:
        self._made: dict[object, SparkSession] = {}
        self._lock = threading.Lock()

    def __call__(self) -> SparkSession:
        """Return the session of the node that runs in this thread."""
        node = self.node()
        spec = self.specs.get(node or "", self.begun)
        key: object = node if node in self.alone else spec
        with self._lock:
            if key not in self._made:
                # Not the engine's own session: dbt-spark leaves settings behind
                # (`partitionOverwriteMode`), and a transaction id must not reach dbt.
                is_begun = key == self.begun
                self._made[key] = new_session(
                    self.session(), SessionSpec(spec.settings) if is_begun else spec
                )
            return self._made[key]
