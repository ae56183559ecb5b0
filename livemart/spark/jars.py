"""Finds the jars of Delta and of a bucket, checked by hash; livemart's own folder is filled once.

Used by setup and by each start of Spark. A folder that somebody has named is only read: what lacks
there is an error, never a download.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from pkgutil import get_data
from urllib.request import HTTPBasicAuthHandler, HTTPPasswordMgrWithDefaultRealm, build_opener
from xml.etree.ElementTree import ParseError, parse

from livemart.errors import ConfigError

_CENTRAL = "https://repo1.maven.org/maven2"
# A repository that says nothing for so long is given up.
_SILENT_S = 60.0


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
        """The name of the file in livemart's own folder."""
        return f"{self.group}_{self.plain_name}"

    @property
    def plain_name(self) -> str:
        """The name that a Maven repository gives the file."""
        return f"{self.artifact}-{self.version}.jar"


# Delta's own dependencies are 33 jars; these two alone carry everything the project does.
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


@functools.cache
def _s3_jars() -> tuple[Jar, ...]:
    """Return S3A of the Hadoop that Spark ships, with the parts of the AWS SDK that it loads.

    The SDK in one jar, which S3A asks for, has 600 MB; all of these have 13. S3A loads classes of
    the accelerator whatever stream it reads by.
    """
    lines = (get_data(__package__, "s3_jars.sha256") or b"").decode().splitlines()
    rows = (line.replace(":", " ").split() for line in lines)
    return tuple(Jar(group, artifact, version, sha256) for sha256, group, artifact, version in rows)


def _jars_of(scheme: str) -> tuple[Jar, ...]:
    return DELTA_JARS + (_s3_jars() if scheme == "s3" else ())


def jar_cache() -> Path:
    """Return livemart's own folder of the jars, or the one that LIVEMART_JARS names.

    Its own is `.cache/jars` in a clone, else `livemart/jars` of the user's cache, else, for a user
    without one that holds or can take them, `temporary_cache`. Their hashes are checked at each
    start.
    """
    if chosen := os.environ.get("LIVEMART_JARS"):
        return Path(chosen)
    clone = Path(__file__).resolve().parents[2]
    if (clone / "scripts" / "setup.py").is_file():
        return clone / ".cache" / "jars"
    cache = user_cache()
    if cache is None or (missing_jars(cache / "jars") and not _can_be_written(cache / "jars")):
        cache = temporary_cache()
    return cache / "jars"


def user_cache() -> Path | None:
    """Return the folder of this user's files that can be made again; None without a home."""
    # As the XDG base directories say: a relative path counts as none.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        # A user that the system does not know, as in some containers, has none.
        cache = Path(os.path.expanduser("~/.cache"))
    return cache / "livemart" if cache.is_absolute() else None


@functools.cache
def temporary_cache() -> Path:
    """Return a folder of temporary files that no other user can write to.

    Where the folder of that name is somebody else's, this process has one for itself.
    """
    folder = Path(tempfile.gettempdir()) / f"livemart-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    if not os.path.lexists(folder) or (folder.is_dir() and is_private(folder)):
        return folder
    return Path(tempfile.mkdtemp(prefix="livemart-"))


def is_private(path: Path) -> bool:
    """Return True if a folder or file exists, is this user's, and no other user may write it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    may_be_written = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.getuid() and not may_be_written and not path.is_symlink()


def _can_be_written(folder: Path) -> bool:
    """Return True if the folder is there, or can be made, and files in it can."""
    place = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)


def is_named(folder: Path | None) -> bool:
    """Return True if the user has named the jars' folder, so that nothing is fetched into it."""
    return folder is not None or bool(os.environ.get("LIVEMART_JARS"))


def require_jars(folder: Path | None = None, scheme: str = "") -> tuple[Path, ...]:
    """Return the paths of the jars; those that livemart's own folder lacks are fetched first.

    A line on standard error says so.

    Args:
        folder: the folder that the settings name; None is livemart's own.
        scheme: of the URL of the warehouse; empty on a disk.

    Raises:
        ConfigError: JARS_MISSING, JAR_CHANGED, JARS_UNREACHABLE, JARS_NOT_STORED.
    """
    if not is_named(folder) and missing_jars(scheme=scheme):
        sys.stderr.write(f"fetching jars into {jar_cache()} (once)\n")
        resolve_jars(scheme)
    return find_jars(folder, scheme)


def missing_jars(folder: Path | None = None, scheme: str = "") -> tuple[Jar, ...]:
    """Return the jars that are not in the folder, whatever their content."""
    place = (folder or jar_cache()).resolve()
    return tuple(jar for jar in _jars_of(scheme) if not os.path.isfile(_path_of(jar, place)))


def find_jars(folder: Path | None = None, scheme: str = "") -> tuple[Path, ...]:
    """Return the paths of the jars, in the order of the class path, each checked by its hash.

    Raises:
        ConfigError: JARS_MISSING, JAR_CHANGED.
    """
    place = (folder or jar_cache()).resolve()
    if missing := missing_jars(place, scheme):
        names = ", ".join(jar.file_name for jar in missing)
        sources = " and ".join(jar.coordinate for jar in missing)
        hint = f"put the files of {sources} there, as a Maven repository has them"
        if is_named(folder):
            hint += ", or take LIVEMART_JARS and `jars` out: livemart then fetches them itself"
        raise ConfigError("JARS_MISSING", f"{place}: found no {names}", hint=hint)
    jars = _jars_of(scheme)
    paths = tuple(_path_of(jar, place) for jar in jars)
    for jar, path in zip(jars, paths, strict=True):
        if not _is_good(jar, path):
            raise ConfigError(
                "JAR_CHANGED",
                f"{path}: its sha256 is not the one of {jar.coordinate}",
                hint=f"delete the file and run the command again, or put that of {jar.coordinate} "
                "in its place, as a Maven repository has it",
            )
    return paths


def resolve_jars(scheme: str = "") -> None:
    """Fetch the jars into `jar_cache` from a Maven repository; those already there stay.

    A company's mirror is the `root` of an `ibiblio` resolver in the Ivy settings file that
    LIVEMART_IVY_SETTINGS names, beside `credentials`. A proxy of HTTPS_PROXY is used.

    Raises:
        ConfigError: JARS_UNREACHABLE if no repository gives a jar, JAR_CHANGED if it gives another
            file than the pinned one, JARS_NOT_STORED if the folder cannot be written.
    """
    place = jar_cache().resolve()
    for jar in _jars_of(scheme):
        if _is_good(jar, _path_of(jar, place)):
            continue
        content = _fetch(jar)
        if hashlib.sha256(content).hexdigest() != jar.sha256:
            raise ConfigError(
                "JAR_CHANGED",
                f"{jar.coordinate}: the downloaded file has another sha256",
                hint="do not use the mirror it comes from; put the jar, as a Maven "
                f"repository has it, into {place}",
            )
        try:
            place.mkdir(parents=True, exist_ok=True)
            # Same file system: another process sees the whole jar or none.
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=place) as scratch:
                draft = Path(scratch) / jar.file_name
                draft.write_bytes(content)
                draft.replace(place / jar.file_name)
        except OSError as error:
            raise ConfigError(
                "JARS_NOT_STORED",
                f"{place}: {error.strerror or error}",
                hint="name a folder that you may write to in XDG_CACHE_HOME, or one that holds the "
                "jars in LIVEMART_JARS",
            ) from error


def _fetch(jar: Jar) -> bytes:
    """Return the file that the first repository with this jar has of it."""
    settings, failures = os.environ.get("LIVEMART_IVY_SETTINGS"), list[str]()
    passwords = HTTPPasswordMgrWithDefaultRealm()
    opener = build_opener(HTTPBasicAuthHandler(passwords))
    path = f"{jar.group.replace('.', '/')}/{jar.artifact}/{jar.version}/{jar.plain_name}"
    try:
        for root in _roots(settings, passwords) if settings else [_CENTRAL]:
            try:
                with opener.open(f"{root.rstrip('/')}/{path}", timeout=_SILENT_S) as answer:
                    content: bytes = answer.read()
                    return content
            except (OSError, HTTPException, ValueError) as error:
                failures.append(f"{root}: {error}")
    except (OSError, ParseError) as error:
        failures.append(f"{settings}: {error}")
    reason = "; ".join(failures) or f"{settings}: found no ibiblio resolver with a root"
    raise ConfigError(
        "JARS_UNREACHABLE",
        f"{jar.coordinate}: {reason}",
        hint="check the network and the proxy (HTTPS_PROXY), or name a mirror's settings in "
        "LIVEMART_IVY_SETTINGS, or a folder that holds the jars in LIVEMART_JARS; then run the "
        "command again",
    )


def _roots(settings: str, passwords: HTTPPasswordMgrWithDefaultRealm) -> list[str]:
    """Return the addresses of Maven repositories in an Ivy settings file; take its passwords."""
    tree = parse(settings)
    for element in tree.iter("credentials"):
        host, user, password = (element.get(name, "") for name in ("host", "username", "passwd"))
        passwords.add_password(None, host, user, password)
    return [root for element in tree.iter("ibiblio") if (root := element.get("root"))]


def _path_of(jar: Jar, folder: Path) -> Path:
    """Return the path of the jar; under Maven's own name if a user has put it there by hand."""
    plain = folder / jar.plain_name
    # Unlike Path.is_file, a folder that may not be searched counts as empty.
    return plain if os.path.isfile(plain) else folder / jar.file_name


def _is_good(jar: Jar, path: Path) -> bool:
    if not os.path.isfile(path):
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
