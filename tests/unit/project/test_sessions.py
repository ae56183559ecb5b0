from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from livemart.errors import ConfigError
from livemart.project.session_spec import PLAIN, SessionSpec
from livemart.project.sessions import NodeSessions, is_utc, keep_sessions, session_of, set_all

ZONE = "spark.sql.session.timeZone"


class _Refused(AnalysisException):
    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition

    def getCondition(self) -> str:
        return self.condition


class FakeSession:
    """Keeps settings and statements; a static setting cannot be changed."""

    def __init__(self) -> None:
        self.conf = self
        self.settings: dict[str, str] = {}
        self.statements: list[str] = []
        self.made: list[FakeSession] = []

    def newSession(self) -> FakeSession:
        self.made.append(FakeSession())
        return self.made[-1]

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        if name.startswith("spark.driver."):
            raise _Refused("CANNOT_MODIFY_CONFIG")
        if name == "bad":
            raise _Refused("INVALID_CONF_VALUE")
        self.settings[name] = value

    def sql(self, statement: str) -> None:
        self.statements.append(statement)
        if "timeZone" in statement:
            self.settings[ZONE] = "UTC"


def _factory(session: FakeSession) -> Callable[[], Any]:
    return lambda: session


def test_one_session_for_each_spec_and_none_for_the_plain_one() -> None:
    spark = cast(Any, FakeSession())
    spec = SessionSpec(((ZONE, "Asia/Tokyo"),), (f"set {ZONE}=UTC", "use shop"))

    session = session_of(spark, spec)

    assert session_of(spark, PLAIN) is spark
    assert session_of(spark, SessionSpec(spec.settings, spec.statements)) is session
    assert cast(Any, session).statements == list(spec.statements)
    # The profile's settings hold whatever a statement sets.
    assert cast(Any, session).settings == {ZONE: "Asia/Tokyo"}
    assert not is_utc(session)
    keep_sessions(spark, [spec])
    assert session_of(spark, spec) is session
    keep_sessions(spark, [PLAIN])
    assert session_of(spark, spec) is not session


def test_what_counts_when_spark_starts_is_passed_over_and_a_mistake_is_not() -> None:
    session = cast(Any, FakeSession())

    set_all(session, {"spark.driver.memory": "4g", "a.b": "1"})

    assert session.settings == {"a.b": "1"}
    with pytest.raises(ConfigError, match=r"SESSION_SETTING_REFUSED: .*bad: found 1: "):
        set_all(session, {"bad": "1"})


def test_a_node_of_dbt_begins_in_the_session_of_its_spec() -> None:
    spark, node = FakeSession(), [""]
    begun = SessionSpec(statements=("set a.b=1",))
    other = begun.then(["set a.b=2"])
    specs = {"model.a": begun, "model.b": other, "model.c": other, "model.d": begun}
    sessions = NodeSessions(_factory(spark), lambda: node[0], specs, frozenset({"model.d"}), begun)

    def session_in(name: str) -> Any:
        node[0] = name
        return sessions()

    # dbt has run on-run-start there itself.
    assert session_in("operation.m.start").statements == []
    assert session_in("model.a") is session_in("operation.m.start")
    assert session_in("model.b") is session_in("model.c") is not session_in("model.a")
    assert session_in("model.b").statements == ["set a.b=1", "set a.b=2"]
    assert session_in("model.d").statements == ["set a.b=1"]
    assert len(spark.made) == 3
