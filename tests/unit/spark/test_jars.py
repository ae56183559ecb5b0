"""Jars are taken from the cache and nowhere else, and only if they are the pinned files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.spark.jars import DELTA_JARS, Jar, delta_jars, jar_cache, resolve_jars

CONTENT = b"classes"
JARS = (Jar("io.delta", "delta-storage", "4.4.0", hashlib.sha256(CONTENT).hexdigest()),)


def test_the_two_jars_are_pinned_for_spark_and_scala_versions() -> None:
    expected = ["io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"]

    actual = [jar.coordinate for jar in DELTA_JARS]

    assert actual == expected


def test_a_jar_with_the_pinned_hash_is_returned(tmp_path: Path) -> None:
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    actual = delta_jars(tmp_path, jars=JARS)

    assert actual == (path,)


def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"io\.delta_delta-storage-4\.4\.0\.jar") as caught:
        delta_jars(tmp_path, jars=JARS)

    assert caught.value.code == "JARS_MISSING"


def test_a_changed_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / JARS[0].file_name).write_bytes(CONTENT + b"!")

    with pytest.raises(ConfigError) as caught:
        delta_jars(tmp_path, jars=JARS)

    assert caught.value.code == "JAR_CHANGED"


def test_the_cache_lies_beside_the_package_unless_a_setting_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMART_JARS", raising=False)
    beside = jar_cache()
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path))
    chosen = jar_cache()

    assert beside.parts[-2:] == (".cache", "jars")
    assert chosen == tmp_path


def test_nothing_is_resolved_that_is_there_already(tmp_path: Path) -> None:
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    resolve_jars(tmp_path, jars=JARS)

    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
