"""Jars are fetched once, or only looked for where somebody says, and must be the pinned files."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from base64 import b64encode
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyspark
import pytest

from livemart.errors import ConfigError
from livemart.spark import jars as jars_module
from livemart.spark.jars import (
    DELTA_JARS,
    Jar,
    find_jars,
    jar_cache,
    missing_jars,
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


def test_a_bucket_is_opened_by_the_hadoop_that_spark_ships() -> None:
    names = [jar.artifact for jar in missing_jars(Path("/nowhere"), "s3")]
    (hadoop,) = (jar for jar in missing_jars(Path("/nowhere"), "s3") if "hadoop" in jar.artifact)

    shipped = Path(pyspark.__file__).parent / "jars" / f"hadoop-client-api-{hadoop.version}.jar"

    assert shipped.is_file()
    assert len(names) == len(set(names)) == 38
    # Spark ships other versions of these.
    assert not any(name.startswith(("netty-codec", "slf4j", "httpc", "commons")) for name in names)
    assert missing_jars(Path("/nowhere")) == DELTA_JARS


@pytest.mark.usefixtures("one_jar")
def test_a_jar_with_the_pinned_hash_is_returned(tmp_path: Path) -> None:
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    actual = find_jars(tmp_path)

    assert actual == (path,)


@pytest.mark.usefixtures("one_jar")
def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"io\.delta_delta-storage-4\.4\.0\.jar") as caught:
        find_jars(tmp_path)

    assert caught.value.code == "JARS_MISSING"


@pytest.mark.usefixtures("one_jar")
def test_a_changed_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / JARS[0].file_name).write_bytes(CONTENT + b"!")

    with pytest.raises(ConfigError) as caught:
        find_jars(tmp_path)

    assert caught.value.code == "JAR_CHANGED"


@pytest.mark.usefixtures("one_jar")
def test_a_jar_under_mavens_own_name_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "delta-storage-4.4.0.jar"
    path.write_bytes(CONTENT)

    assert find_jars(tmp_path) == (path,)


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


def _mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Name repositories in folders by an Ivy settings file."""
    resolvers = "".join(f'<ibiblio name="{it.name}" root="{it.as_uri()}/"/>' for it in folders)
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(f"<ivysettings><resolvers>{resolvers}</resolvers></ivysettings>")
    monkeypatch.setenv("LIVEMART_IVY_SETTINGS", str(settings))


@pytest.fixture
def users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """livemart's own folder of an installation, empty, and a repository of one jar."""
    temporary_cache.cache_clear()
    monkeypatch.delenv("LIVEMART_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars_module, "__file__", str(tmp_path / "lib/livemart/spark/jars.py"))
    _mirror(tmp_path, monkeypatch, tmp_path / "repository")
    file = tmp_path / "repository/io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
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
    assert not users_cache.exists()


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


@pytest.mark.usefixtures("one_jar")
def test_the_first_repository_that_has_a_jar_gives_it(
    users_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _mirror(tmp_path, monkeypatch, tmp_path / "empty", tmp_path / "repository")

    assert require_jars() == (users_cache / JARS[0].file_name,)


class _Locked(SimpleHTTPRequestHandler):
    """A repository that wants a user and a password."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") == f"Basic {b64encode(b'ann:secret').decode()}":
            super().do_GET()
        else:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="repository"')
            self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.usefixtures("one_jar")
@pytest.mark.parametrize("password", ["secret", "another"])
def test_a_repository_gets_the_credentials_of_its_host(
    users_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = partial(_Locked, directory=tmp_path / "repository")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        (tmp_path / "ivysettings.xml").write_text(
            f'<ivysettings><credentials host="{address}" username="ann" passwd="{password}"/>'
            f'<resolvers><ibiblio root="http://{address}"/></resolvers></ivysettings>'
        )
        try:
            if password == "secret":
                assert require_jars() == (users_cache / JARS[0].file_name,)
            else:
                with pytest.raises(ConfigError, match="401") as caught:
                    require_jars()
                assert password not in str(caught.value)
        finally:
            server.shutdown()


@pytest.mark.usefixtures("one_jar")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("<ivysettings/>", "found no ibiblio resolver"),
        ("<ivysettings", "no element found|unclosed token"),
        (None, "No such file"),
    ],
)
def test_settings_that_name_no_repository_are_an_error(
    users_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: str | None,
    words: str,
) -> None:
    path = tmp_path / "others.xml"
    if settings is not None:
        path.write_text(settings)
    monkeypatch.setenv("LIVEMART_IVY_SETTINGS", str(path))

    with pytest.raises(ConfigError, match=words) as caught:
        require_jars()

    assert caught.value.code == "JARS_UNREACHABLE"
    assert str(path) in caught.value.message
    assert not users_cache.exists()


def test_a_jar_that_cannot_be_reached_is_an_error_with_advice(
    users_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = Jar("io.delta", "delta-nowhere", "4.4.0", "0" * 64)
    monkeypatch.setattr(jars_module, "DELTA_JARS", (jar,))

    with pytest.raises(ConfigError) as caught:
        resolve_jars()

    assert caught.value.code == "JARS_UNREACHABLE"
    assert "io.delta:delta-nowhere:4.4.0" in caught.value.message
    assert str(tmp_path / "repository") in caught.value.message
    assert not users_cache.exists()


@pytest.mark.usefixtures("one_jar", "users_cache")
@pytest.mark.parametrize("proxy", ["proxy:abc", "http://127.0.0.1:{closed}"])
def test_jars_are_asked_for_through_the_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.delenv("LIVEMART_IVY_SETTINGS")
    for name in ("HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("https_proxy", proxy.format(closed=closed.getsockname()[1]))

        with pytest.raises(ConfigError, match=r"nonnumeric port|refused") as caught:
            require_jars()

    assert caught.value.code == "JARS_UNREACHABLE"
    assert "HTTPS_PROXY" in caught.value.hint


@pytest.mark.usefixtures("one_jar")
def test_nothing_is_resolved_that_is_there_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path))
    path = tmp_path / JARS[0].file_name
    path.write_bytes(CONTENT)

    resolve_jars()

    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
