"""Finds and fetches the two Delta jars, checked by hash.

Used by setup, which fetches them once, and by each start of Spark, which looks in their folder and
never at a network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from livemart.errors import ConfigError

_SETUP = "run `make env`, which fetches the jars once and checks them"


@dataclass(frozen=True, slots=True)
class Jar:
    """A Maven artifact and the hash of its file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """The name that Spark's resolver gives the file."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


# Spark's resolver would bring 33 jars; these two alone carry everything the project does.
DELTA_JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


def jar_cache() -> Path:
    """Return the folder of the jars: LIVEMART_JARS, or `.cache/jars` beside the package."""
    if chosen := os.environ.get("LIVEMART_JARS"):
        return Path(chosen)
    return Path(__file__).resolve().parents[2] / ".cache" / "jars"


def delta_jars(
    cache: Path | None = None, *, jars: tuple[Jar, ...] = DELTA_JARS
) -> tuple[Path, ...]:
    """Return the paths of the jars, in the order of the class path, each checked by its hash.

    Raises:
        ConfigError: JARS_MISSING, JAR_CHANGED.
    """
    folder = (cache or jar_cache()).resolve()
    paths = tuple(folder / jar.file_name for jar in jars)
    if missing := [path.name for path in paths if not path.is_file()]:
        raise ConfigError("JARS_MISSING", f"{folder}: found no {', '.join(missing)}", hint=_SETUP)
    for jar, path in zip(jars, paths, strict=True):
        _check(jar, path)
    return paths


def resolve_jars(cache: Path | None = None, *, jars: tuple[Jar, ...] = DELTA_JARS) -> None:
    """Fetch the jars into the cache with Spark's own Ivy resolver; those already there stay.

    A settings file for a company's mirror is named by LIVEMART_IVY_SETTINGS.

    Raises:
        ConfigError: JARS_UNREACHABLE if the resolver finds no such jar, JAR_CHANGED if it finds
            another file than the pinned one.
    """
    folder = (cache or jar_cache()).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in jars if not _is_good(jar, folder / jar.file_name)]
    if not missing:
        return
    with tempfile.TemporaryDirectory(prefix="resolve-", dir=folder) as scratch:
        for jar, file in _resolve(missing, Path(scratch)):
            _check(jar, file)
            # Same file system: another process sees the whole jar or none.
            arrived = shutil.copy(file, Path(scratch) / f"{jar.file_name}.part")
            os.replace(arrived, folder / jar.file_name)


def _resolve(jars: list[Jar], scratch: Path) -> list[tuple[Jar, Path]]:
    """Return each jar with the file that Spark's resolver put below `scratch`."""
    from py4j.protocol import Py4JJavaError
    from pyspark.java_gateway import launch_gateway

    log = scratch / "resolver.log"
    files_by_jar: list[tuple[Jar, Path]] = []
    with log.open("wb") as output:
        # The resolver reports to its own streams; its report matters only where it fails.
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            popen_kwargs={"stdout": output, "stderr": output}
        )
        try:
            jvm = gateway.jvm
            assert jvm is not None
            properties = jvm.java.lang.System
            properties.setProperty("spark.jars.ivy", str(scratch / "ivy"))
            if settings := os.environ.get("LIVEMART_IVY_SETTINGS"):
                properties.setProperty("spark.jars.ivySettings", settings)
            resolver = jvm.org.apache.spark.util.DependencyUtils
            for jar in jars:
                uri = jvm.java.net.URI.create(f"ivy://{jar.coordinate}?transitive=false")
                files = resolver.resolveMavenDependencies(uri).iterator()
                files_by_jar.append((jar, Path(str(files.next()))))
        except Py4JJavaError as error:
            reason = str(error.java_exception).splitlines()[0]
            raise ConfigError(
                "JARS_UNREACHABLE",
                f"{jars[len(files_by_jar)].coordinate}: {reason}",
                hint="check the network and the proxy (JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=...) "
                "or name a mirror's settings in LIVEMART_IVY_SETTINGS; then run `make env` again",
            ) from error
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
    return files_by_jar


def _check(jar: Jar, path: Path) -> None:
    if not _is_good(jar, path):
        raise ConfigError(
            "JAR_CHANGED",
            f"{path}: its sha256 is not the one of {jar.coordinate}",
            hint=f"delete the file, then {_SETUP}",
        )


def _is_good(jar: Jar, path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
