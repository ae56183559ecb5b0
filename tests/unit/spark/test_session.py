"""Spark's settings are one place, and what keeps a JVM from starting is said."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pydantic import ValidationError
from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError

from livemart.errors import ConfigError
from livemart.settings import Settings
from livemart.spark import session as session_module
from livemart.spark.session import open_session, prepare_environment, session_settings
from livemart.state.lock import hold_warehouse
from livemart.state.places import LocalFolder
from livemart.storage.location import Location


def test_the_settings_that_results_depend_on_are_pinned(tmp_path: Path) -> None:
    expected = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.variable.substitute": "false",
        "spark.hadoop.parquet.filter.dictionary.enabled": "false",
        "spark.sql.window.segmentTree.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    }

    actual = session_settings(tmp_path, ())

    assert {name: actual[name] for name in expected} == expected


def test_executors_of_their_own_are_given_the_jars(tmp_path: Path) -> None:
    jars = (tmp_path / "a b.jar", tmp_path / "c.jar")

    alone = session_settings(tmp_path, jars, "local[*]")
    cluster = session_settings(tmp_path, jars, "spark://head:7077")
    beside = session_settings(tmp_path, jars, "local-cluster[2,1,1024]")

    assert "spark.jars" not in alone
    assert cluster["spark.jars"] == f"file://{tmp_path}/a%20b.jar,file://{tmp_path}/c.jar"
    assert beside["spark.jars"] == cluster["spark.jars"]
    assert alone["spark.driver.host"] == beside["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in cluster


def test_properties_of_the_project_are_added_and_its_jars_come_last(tmp_path: Path) -> None:
    given = {"spark.executor.memory": "4g", "spark.driver.host": "10.0.0.5"}
    jars = {"spark.jars": "file:///opt/udf.jar"}

    beside = session_settings(tmp_path, (tmp_path / "delta.jar",), "spark://a:1", given | jars)
    alone = session_settings(tmp_path, (), "local[2]", jars)

    assert beside["spark.executor.memory"] == "4g"
    assert beside["spark.driver.host"] == "10.0.0.5"
    assert beside["spark.jars"] == f"file://{tmp_path}/delta.jar,file:///opt/udf.jar"
    assert alone["spark.jars"] == "file:///opt/udf.jar"
    assert beside["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"


def test_what_livemart_sets_no_project_may_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, "none")
    # Where the driver listens differs with the network; jars and Java's options are added to ours.
    added = {"spark.jars", "spark.executor.extraJavaOptions"}
    free = {"spark.driver.host", "spark.driver.bindAddress", *added}
    own = session_settings(Location.parse("s3://mart/eu"), (Path("a.jar"),), "local-cluster[2,1,9]")

    for name in own.keys() - free:
        with pytest.raises(ValidationError, match=f"leave out {re.escape(name)}: "):
            Settings(spark_conf={name: "1"})
    assert Settings(spark_conf=dict.fromkeys(free, "1")).spark_conf.keys() == free


def test_a_warehouse_in_a_bucket_is_opened_by_hadoops_name_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "none")
    settings = session_settings(Location.parse("s3://mart/eu"), ())

    assert settings["spark.sql.warehouse.dir"] == "s3a://mart/eu"
    assert settings["spark.hadoop.fs.s3a.input.stream.type"] == "classic"


def test_java_and_jars_are_looked_for_before_a_jvm_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[str] = []
    monkeypatch.setattr(session_module, "require_java", lambda: looked_for.append("java"))
    monkeypatch.setattr(java_gateway, "launch_gateway", lambda **_: pytest.fail("started"))

    with pytest.raises(ConfigError, match="JARS_MISSING"):
        open_session(Settings(warehouse=tmp_path, jars=tmp_path))

    assert looked_for == ["java"]


def test_a_jvm_that_is_given_the_lock_and_ends_at_once_is_an_error_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(popen_kwargs: dict[str, Any]) -> Any:
        given.update(popen_kwargs)
        popen_kwargs["stderr"].write(b"Error: Could not create the Java Virtual Machine.\n")
        popen_kwargs["stderr"].flush()
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    given: dict[str, Any] = {}
    own_log = LocalFolder(tmp_path).spark_log
    own_log.parent.mkdir(parents=True)
    # Written by many starts before.
    own_log.write_bytes(b"WARNING\n" * (1 << 18))
    for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)

    with (
        hold_warehouse(tmp_path) as lock,
        pytest.raises(ConfigError, match="Could not create the Java Virtual Machine") as caught,
    ):
        settings = Settings(warehouse=tmp_path, master="local[1]", memory="1g")
        given_path = {"spark.driver.extraClassPath": "extra.jar"}
        open_session(settings, given_path, lock=lock, jars=())

    assert given["pass_fds"] == (lock.descriptor,)
    assert os.environ["PYSPARK_SUBMIT_ARGS"].startswith("--master local[1] --driver-memory 1g ")
    assert '--conf "spark.driver.extraClassPath=extra.jar"' in os.environ["PYSPARK_SUBMIT_ARGS"]
    assert caught.value.code == "SPARK_NOT_STARTED"
    assert str(own_log) in caught.value.hint
    assert own_log.read_bytes() == b"Error: Could not create the Java Virtual Machine.\n"


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", "C.UTF-8"), ("iso8859-1", "C")])
def test_java_names_files_as_python_does_whatever_the_locale(
    encoding: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Java (17) takes the encoding of names, sun.jnu.encoding, from the locale: ASCII in C.
    variables = {"LC_ALL": "C"}
    monkeypatch.setattr("os.environ", variables)
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: encoding)

    prepare_environment(Settings(master="local[2]"))

    assert variables["LC_ALL"] == expected
    assert variables["PYSPARK_PYTHON"] == sys.executable


def test_workers_elsewhere_run_the_interpreter_that_the_project_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables: dict[str, str] = {}
    monkeypatch.setattr("os.environ", variables)

    conf = {"spark.pyspark.python": "./env/bin/python"}
    prepare_environment(Settings(master="spark://head:7077", spark_conf=conf))

    assert variables["PYSPARK_PYTHON"] == "./env/bin/python"
    assert "SPARK_LOCAL_IP" not in variables


def test_a_master_that_spark_refuses_is_named_with_sparks_own_words() -> None:
    class Refusal(Py4JJavaError):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __str__(self) -> str:
            return (
                "An error occurred while calling None.JavaSparkContext.\n"
                ": org.apache.spark.SparkException: Could not parse Master URL: 'spark:/x'\n\tat a"
            )

    class Builder:
        def getOrCreate(self) -> None:
            raise Refusal

    builder: Any = Builder()
    with pytest.raises(ConfigError, match="Could not parse Master URL") as caught:
        session_module._context_started(builder, "spark:/x")

    assert caught.value.code == "SPARK_NOT_STARTED"
    assert caught.value.message.endswith("Could not parse Master URL: 'spark:/x'")
    assert "spark://host:7077" in caught.value.hint
