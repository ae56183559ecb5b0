"""The Java that Spark will start is found, or its absence said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.spark.java import find_java, parse_java_version, require_java


def fake_java(folder: Path, version_line: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_412"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "17-ea" 2021-09-14', 17),
        ("Segmentation fault", None),
    ],
)
def test_the_feature_release_is_read_from_any_vendors_text(text: str, expected: int | None) -> None:
    actual = parse_java_version(text)

    assert actual == expected


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fake_java(tmp_path / "home", 'openjdk version "17.0.15"')
    other = fake_java(tmp_path / "other", 'openjdk version "11.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent))

    actual = find_java()

    assert actual == expected


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25.0.3"])
def test_a_java_that_spark_runs_on_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    expected = fake_java(tmp_path, f'openjdk version "{version}" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    actual = require_java()

    assert actual == expected


def test_a_wrong_java_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, 'openjdk version "11.0.22" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        require_java()

    assert caught.value.code == "JAVA_WRONG_VERSION"
    assert caught.value.message == f"{java}: found Java 11, need Java 17, 21 or 25"
    assert "openjdk-17" in caught.value.hint and "openjdk-21" in caught.value.hint


def test_a_java_home_without_java_is_said_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        require_java()

    assert caught.value.code == "JAVA_MISSING"


def test_no_java_at_all_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        require_java()

    assert caught.value.code == "JAVA_MISSING"
