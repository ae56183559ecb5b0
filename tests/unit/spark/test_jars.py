"""Jars are fetched once, or only looked for where somebody says, and must be the pinned files."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.spark import jars as jars_module
from livemart.spark.jars import (
    DELTA_JARS,
    Jar,
    delta_jars,
    jar_cache,
    require_jars,
    resolve_jars,
    temporary_cache,
)

CONTENT = b"classes"
JARS = (Jar("io.delta", "delta-storage", "4.4.0", hashlib.sha256(CONTENT).hexdigest()),)


@pytest.fixture
def one_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar of a few bytes in place of Delta's two."""
    monkeypatch.setattr(jars_module, "DELTA_JARS", JARS)


def test_the_two_jars_are_pinned_for_spark_and_scala_versions() -> None:
    expected = ["io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"]

    actual = [jar.coordinate for jar in DELTA_JARS]

    assert actual == expected


@pytest.mark.usefixtures("one_jar")
def test_a_jar_with_the_pinned_hash_is_returned(tmp_path: Path) -> None:
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    actual = delta_jars(tmp_path)

    assert actual == (path,)


@pytest.mark.usefixtures("one_jar")
def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"io\.delta_delta-storage-4\.4\.0\.jar") as caught:
        delta_jars(tmp_path)

    assert caught.value.code == "JARS_MISSING"


@pytest.mark.usefixtures("one_jar")
def test_a_changed_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / JARS[0].file_name).write_bytes(CONTENT + b"!")

    with pytest.raises(ConfigError) as caught:
        delta_jars(tmp_path)

    assert caught.value.code == "JAR_CHANGED"


@pytest.mark.usefixtures("one_jar")
def test_a_jar_under_mavens_own_name_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "delta-storage-4.4.0.jar"
    path.write_bytes(CONTENT)

    assert delta_jars(tmp_path) == (path,)


def test_jars_lie_in_a_clone_or_in_the_users_cache_unless_a_setting_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMART_JARS", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    ann, var = tmp_path / "ann", tmp_path / "var"
    for folder in (ann, var):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(ann))
    folders = [jar_cache()]
    monkeypatch.setattr(jars_module, "__file__", str(tmp_path / "lib/livemart/spark/jars.py"))
    folders.append(jar_cache())
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    folders.append(jar_cache())
    monkeypatch.setenv("XDG_CACHE_HOME", str(var))
    folders.append(jar_cache())
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path))
    folders.append(jar_cache())

    assert folders == [
        Path(__file__).resolve().parents[3] / ".cache" / "jars",
        ann / ".cache" / "livemart" / "jars",
        ann / ".cache" / "livemart" / "jars",
        var / "livemart" / "jars",
        tmp_path,
    ]


@pytest.fixture
def users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """livemart's own folder of an installation, empty, and a resolver that needs no JVM."""
    temporary_cache.cache_clear()
    monkeypatch.delenv("LIVEMART_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars_module, "__file__", str(tmp_path / "lib/livemart/spark/jars.py"))
    monkeypatch.setattr(jars_module, "require_java", lambda: None)

    def resolve(jars: list[Jar], scratch: Path) -> list[tuple[Jar, Path]]:
        file = scratch / "fetched.jar"
        file.write_bytes(CONTENT)
        return [(jar, file) for jar in jars]

    monkeypatch.setattr(jars_module, "_resolve", resolve)
    return tmp_path / "cache" / "livemart" / "jars"


@pytest.mark.usefixtures("one_jar")
def test_the_first_use_fetches_and_says_so_and_the_second_finds(
    users_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = require_jars()
    second = require_jars()

    assert first == second == (users_cache / JARS[0].file_name,)
    assert capsys.readouterr().err == f"fetching jars into {users_cache} (once)\n"
    assert [path.name for path in users_cache.iterdir()] == [JARS[0].file_name]


def test_what_is_fetched_must_have_the_pinned_hash(
    users_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Jar("io.delta", "delta-storage", "4.4.0", "0" * 64)
    monkeypatch.setattr(jars_module, "DELTA_JARS", (other,))

    with pytest.raises(ConfigError) as caught:
        require_jars()

    assert caught.value.code == "JAR_CHANGED"
    assert list(users_cache.iterdir()) == []


@pytest.mark.usefixtures("one_jar")
def test_nothing_is_fetched_into_a_folder_that_somebody_named(
    users_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path / "offline"))

    for folder in (None, tmp_path / "set"):
        with pytest.raises(ConfigError) as caught:
            require_jars(folder)
        assert caught.value.code == "JARS_MISSING"
        assert "io.delta:delta-storage:4.4.0" in caught.value.hint
    assert not users_cache.exists()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("one_jar", "users_cache")
def test_a_home_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    for _ in range(2):
        (path,) = require_jars()

    assert path == tmp_path / f"livemart-{os.getuid()}" / "jars" / JARS[0].file_name
    assert capsys.readouterr().err == f"fetching jars into {path.parent} (once)\n"


def test_jars_of_a_home_that_can_only_be_read_are_used(
    users_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_cache.mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert jar_cache() != users_cache

    for jar in DELTA_JARS:
        (users_cache / jar.file_name).write_bytes(CONTENT)

    assert jar_cache() == users_cache


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_a_folder_that_others_can_write_is_not_used(
    kind: str, users_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"livemart-{os.getuid()}"
    (tmp_path / "others").mkdir()
    match kind:
        case "open to others":
            folder.mkdir()
            folder.chmod(0o777)
        case "a link":
            folder.symlink_to(tmp_path / "others")
        case _:
            folder.write_text("a file")

    used = temporary_cache()

    assert used == temporary_cache() != folder
    assert stat.S_IMODE(used.lstat().st_mode) == 0o700


@pytest.mark.usefixtures("one_jar")
def test_where_nothing_can_be_written_the_settings_are_named(
    users_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "cache"))

    with pytest.raises(ConfigError) as caught:
        require_jars()

    assert caught.value.code == "JARS_NOT_STORED"
    assert f"livemart-{os.getuid()}" in caught.value.message
    assert "LIVEMART_JARS" in caught.value.hint


def test_javas_resolver_is_told_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    none = jars_module._proxy_properties()
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    given = jars_module._proxy_properties()

    assert none == {}
    assert given == {"https.proxyHost": "proxy.example", "https.proxyPort": "3128"}
    monkeypatch.setenv("https_proxy", "proxy:abc")
    with pytest.raises(ConfigError, match="JARS_UNREACHABLE: HTTPS_PROXY"):
        jars_module._proxy_properties()


@pytest.mark.usefixtures("one_jar")
def test_nothing_is_resolved_that_is_there_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path))
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    resolve_jars()

    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
