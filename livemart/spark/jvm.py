"""Chooses the options of the JVM: for a command of a minute, or for a stream of days.

Used by the session. A command spends most of its time on loading and compiling Spark itself: the
first compiler alone and an archive of the loaded classes halve that (`make bench-command`). A
stream earns back what the second compiler costs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from livemart.spark.jars import is_named, is_private, jar_cache, user_cache
from livemart.spark.java import find_java

# A single pause disturbs no user: the collector that takes the least work in all.
_LONG = "-XX:+UseParallelGC"
# The first compiler alone fills its space for code in four minutes, if it is not given more.
_SHORT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
# The value of `LIVEMART_JVM_OPTIONS`, instead of options, if every process is short.
_ALWAYS_SHORT = "short"
# The JVM writes the archive while it exits, maybe after the command, and its first bytes last.
_UNWRITTEN = bytes(4)
_WRITTEN_WITHIN_S = 120.0
_GIVEN_UP_S = 3600.0
_UNUSED_S = 7 * 86_400.0


def jvm_options(jars: Sequence[Path], *, is_short: bool) -> str:
    """Return the options for this process's JVM.

    Args:
        jars: on its class path, beside Spark's own.
        is_short: it ends within a minute or so. The first of these leaves an archive of the classes
            that it has loaded, 160 to 190 MB beside livemart's jars, to those after it.
    """
    options = os.environ.get("LIVEMART_JVM_OPTIONS")
    if options == _ALWAYS_SHORT:
        is_short = True
    elif options is not None:
        return options
    if not is_short:
        return _LONG
    # A folder that somebody has named is only read.
    folder = user_cache() if is_named(None) else jar_cache().parent
    if folder is None:
        return _SHORT
    return f"{_SHORT} {_archive_options(folder, _key(find_java(), jars))}".strip()


def _archive_options(folder: Path, key: str) -> str:
    archive = folder / f"classes-{key}.jsa"
    # Spark splits its options at these, and Java a path at a colon.
    if any(sign in str(folder) for sign in " '\"\\:"):
        return ""
    is_under_way = True
    # A home that cannot be written: as fast as without, or with the archive that is there.
    with suppress(OSError):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        if is_private(folder):
            is_under_way = _take_drafts(folder, archive)
    # The JVM ignores an archive that does not fit, and says so on standard output, but for this.
    quiet = "-Xshare:auto -Xlog:disable -Xlog:all=off"
    # It trusts the memory that it maps: a user who may write there could run code here.
    if is_private(folder) and is_private(archive):
        with suppress(OSError):
            os.utime(archive)
        return f"-XX:SharedArchiveFile={archive} {quiet}"
    if is_under_way or os.path.lexists(archive):
        return ""
    draft = Path(f"{archive}.{os.getpid()}")
    try:
        draft.touch()
    except OSError:
        return ""
    return f"-XX:ArchiveClassesAtExit={draft} {quiet}"


def _take_drafts(folder: Path, archive: Path) -> bool:
    """Give the first whole draft its name, remove the others; True if one is written now."""
    is_under_way = False
    for draft in folder.glob("classes-*.jsa.*"):
        # Another process may do the same.
        with suppress(FileNotFoundError):
            with draft.open("rb") as file:
                is_whole = file.read(4).ljust(4, b"\0") != _UNWRITTEN
            if is_whole and draft.name.startswith(archive.name) and is_private(draft):
                draft.replace(archive)
            elif is_whole or not _is_written_now(draft):
                draft.unlink()
            else:
                is_under_way = is_under_way or draft.name.startswith(archive.name)
    for other in folder.glob("classes-*.jsa"):
        with suppress(FileNotFoundError):
            # Another installation of this user has its own, and uses it.
            if other != archive and time.time() - other.stat().st_mtime > _UNUSED_S:
                other.unlink()
    return is_under_way


def _is_written_now(draft: Path) -> bool:
    """Return True unless the JVM was killed: its command lives, or it wrote a moment ago."""
    age_s, pid = time.time() - draft.stat().st_mtime, draft.suffix.removeprefix(".")
    if pid == str(os.getpid()) or age_s > _GIVEN_UP_S:
        # It belongs to an earlier process, which had our number.
        return False
    if age_s < _WRITTEN_WITHIN_S:
        return True
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        # It lives, and is somebody else's.
        pass
    return True


def _key(java: Path, jars: Sequence[Path]) -> str:
    """Return the name of a class path: an archive serves no other."""
    import pyspark

    real = java.resolve()
    parts = [f"{real} {_size_and_time(real)}", pyspark.__file__, pyspark.__version__]
    parts += [f"{jar} {_size_and_time(jar)}" for jar in jars]
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _size_and_time(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"
