from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from livemart.spark.jars import user_cache
from livemart.spark.jvm import jvm_options

SHORT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # A folder of jars that somebody has named is only read.
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path / "jars"))
    monkeypatch.delenv("LIVEMART_JVM_OPTIONS", raising=False)
    return tmp_path / "cache" / "livemart"


def options(*jars: Path) -> str:
    return jvm_options(jars, is_short=True)


def _draft(text: str) -> Path:
    """Return where the JVM will write the archive."""
    return Path(text.partition("-XX:ArchiveClassesAtExit=")[2].split()[0])


def test_it_lies_beside_the_jars_that_livemart_has_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMART_JARS")
    monkeypatch.setattr("livemart.spark.jvm.jar_cache", lambda: tmp_path / "mine" / "jars")

    assert _draft(options()).parent == tmp_path / "mine"


def test_a_stream_takes_both_compilers_and_keeps_no_archive(cache: Path) -> None:
    assert jvm_options((), is_short=False) == "-XX:+UseParallelGC"
    assert not cache.exists()


def test_what_the_environment_says_is_all_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMART_JVM_OPTIONS", "-Xint")

    assert options() == jvm_options((), is_short=False) == "-Xint"


def test_the_first_command_leaves_an_archive_to_those_after_it(cache: Path) -> None:
    first = options()
    # The number of a living process.
    draft = _draft(first).replace(_draft(first).with_suffix(f".{os.getppid()}"))
    for unwritten in (b"", bytes(4) + b"classes"):
        draft.write_bytes(unwritten)
        # One is enough.
        assert options() == SHORT
    draft.write_bytes(b"classes")

    after = options()

    (archive,) = cache.iterdir()
    assert archive.suffix == ".jsa"
    assert f"-XX:SharedArchiveFile={archive} " in after
    assert "-XX:TieredStopAtLevel=1" in first and "-XX:TieredStopAtLevel=1" in after
    assert archive.read_bytes() == b"classes"


def test_what_a_killed_jvm_has_left_goes(cache: Path) -> None:
    draft = _draft(options())
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = draft.with_suffix(f".{ended.pid}")
    draft.rename(left)
    left.write_bytes(bytes(1000))
    assert options() == SHORT
    old = time.time() - 3600
    os.utime(left, (old, old))

    assert _draft(options()) == draft
    assert not left.exists()


def test_processes_that_are_all_short_say_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMART_JVM_OPTIONS", "short")

    assert "-XX:TieredStopAtLevel=1" in jvm_options((), is_short=False)


@pytest.mark.parametrize("place", ["folder", "archive"])
def test_an_archive_that_others_may_have_written_is_not_mapped(cache: Path, place: str) -> None:
    draft = _draft(options())
    draft.write_bytes(b"classes")
    assert "SharedArchiveFile" in options()
    (archive,) = cache.iterdir()

    (cache if place == "folder" else archive).chmod(0o777)

    assert options() == SHORT


def test_a_draft_with_our_own_number_is_of_a_process_before(cache: Path) -> None:
    draft = _draft(options())
    draft.write_bytes(bytes(1000))

    assert _draft(options()) == draft


def test_an_archive_of_another_class_path_stays_while_it_is_used(
    cache: Path, tmp_path: Path
) -> None:
    jar = tmp_path / "delta.jar"
    jar.write_text("1")
    cache.mkdir(parents=True)
    old, used = cache / "classes-0123.jsa", cache / "classes-4567.jsa"
    for path in (old, used):
        path.write_text("of another installation")
    os.utime(old, (time.time() - 8 * 86_400,) * 2)

    one = options(jar)
    jar.write_text("other")
    other = options(jar)

    assert used.exists() and not old.exists()
    assert one.split("classes-")[1][:16] != other.split("classes-")[1][:16]


def test_a_cache_that_cannot_be_made_costs_nothing_but_time(cache: Path) -> None:
    cache.parent.write_text("a file")

    assert options() == SHORT


def test_a_user_without_a_home_has_no_archive_that_others_could_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)

    assert user_cache() is None
    assert options() == SHORT


def test_a_path_that_spark_would_split_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))

    assert options() == SHORT
