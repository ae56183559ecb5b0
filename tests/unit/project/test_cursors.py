from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from livemart.project.cursors import NoCursor, SparkCursor, SparkNeeded, StatementFailed


def test_without_spark_every_statement_says_that_it_needs_it() -> None:
    with pytest.raises(SparkNeeded, match="select max"):
        NoCursor().execute("select max(day)\nfrom raw.orders")


def test_an_error_of_java_is_told_by_its_causes_without_its_stack() -> None:
    class Failure(Py4JJavaError):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __str__(self) -> str:
            return (
                "An error occurred while calling o286.sql.\n"
                ": org.apache.spark.SparkException: Job aborted: FetchFailedException\n"
                "\tat org.apache.spark.errors.Errors$.fetch(Errors.scala:426)\n"
                "Caused by: java.io.IOException: No space left on device\n"
                "\tat java.base/sun.nio.fs.UnixException.rethrow(UnixException.java:92)\n"
                "\t... 28 more\n"
            )

    def fail(_: str) -> None:
        raise Failure

    session: Any = SimpleNamespace(sql=fail, conf=SimpleNamespace(set=lambda *_: None))
    with pytest.raises(StatementFailed) as caught:
        SparkCursor(lambda: session, {}).execute("select 1")

    assert str(caught.value).splitlines()[1:] == [
        ": org.apache.spark.SparkException: Job aborted: FetchFailedException",
        "Caused by: java.io.IOException: No space left on device",
    ]


def test_a_query_comment_behind_a_setting_is_no_part_of_its_value() -> None:
    sent: list[str] = []
    session: Any = SimpleNamespace(sql=sent.append, conf=SimpleNamespace(set=lambda *_: None))
    cursor = SparkCursor(lambda: session, {})

    cursor.execute("set spark.sql.session.timeZone = Europe/Lisbon\n/* {'app': 1} */")
    cursor.execute("set a.b = 1\n/* dbt */;")
    cursor.execute("add jar /a/b.jar\n/* dbt */")
    cursor.execute("select 1\n/* dbt */;")

    assert sent == [
        "set spark.sql.session.timeZone = Europe/Lisbon",
        "set a.b = 1",
        "add jar /a/b.jar",
        "select 1\n/* dbt */",
    ]
