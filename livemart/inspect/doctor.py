"""Diagnoses a machine and the warehouse on it.

Used by the command `doctor`. It changes nothing, does not start Spark, waits for nothing and does
not disturb a live runner.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from livemart.errors import LivemartError
from livemart.inspect.store_standing import look_at_store
from livemart.land.sources.files.unread import unread_files
from livemart.project.profiles import no_project, why_no_project
from livemart.settings import Settings
from livemart.spark.jars import find_jars, is_named, jar_cache, missing_jars
from livemart.spark.java import java_release, require_java
from livemart.state.checkpoint import Recorded, open_checkpoint, read_epoch
from livemart.state.holders import Holder
from livemart.state.lease import require_leases
from livemart.state.lock import is_held, who_holds
from livemart.state.places import LocalFolder, StateFolder
from livemart.state.project_graph import serves_nothing
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage

Level = Literal["ok", "warning", "problem"]

_GIB = 1024**3
_DISK_PROBLEM, _DISK_WARNING = 1 * _GIB, 5 * _GIB
_PINNED = ("pyspark", "delta-spark", "deltalake", "dbt-core", "dbt-spark", "sqlglot")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: the finding and, unless all is well, the next step."""

    name: str
    level: Level
    message: str
    hint: str | None = None

    @property
    def is_problem(self) -> bool:
        """True if a command would fail because of it."""
        return self.level == "problem"


def diagnose(settings: Settings) -> list[Finding]:
    """Return a finding for everything looked at, in the order in which a run would meet it."""
    warehouse = settings.warehouse
    findings = [
        _check_python(),
        _guarded("java", lambda: f"Java {java_release(java := require_java())} at {java}"),
        check_versions(_required_versions(), _installed_version),
        check_jars(settings.jars, Location.of(settings.farthest).scheme),
        place := check_warehouse(warehouse),
        check_disk(warehouse),
    ]
    if place.is_problem and not isinstance(warehouse, Path):
        # All else asks the bucket, too.
        return findings
    holder = who_holds(warehouse)
    findings += [
        check_landing(settings.landing, warehouse),
        check_lock(holder, is_locked=holder is not None or is_held(warehouse)),
        check_loopback(holder),
        check_checkpoint(warehouse),
        check_store(settings.store_url, warehouse),
    ]
    return findings


def find_project(folder: Path) -> Finding:
    """Look whether the folder is that of a dbt project; a machine may be checked without one."""
    if why_no_project(folder) is None:
        return Finding("project", "ok", str(folder))
    error = no_project(folder)
    return Finding("project", "warning", error.message, error.hint)


def render_findings(findings: Sequence[Finding]) -> str:
    """Return one line a finding, and the next step below each that is not well."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.name:<{width}}  {finding.message}")
        if finding.hint:
            lines.append(f"{'':<8} {'':<{width}}  next: {finding.hint}")
    return "\n".join(lines)


def check_versions(required: Mapping[str, str], installed: Callable[[str], str | None]) -> Finding:
    """Compare the installed packages with those that livemart asks for.

    Args:
        required: version specifier by distribution name.
        installed: gives the installed version of a distribution, None if it is not there.
    """
    from packaging.specifiers import SpecifierSet

    wrong, right = [], []
    for name, specifier in required.items():
        version = installed(name)
        if version is None:
            wrong.append(f"{name} is missing")
        elif version not in SpecifierSet(specifier):
            wrong.append(f"{name} is {version}, not {specifier}")
        else:
            right.append(f"{name} {version}")
    if wrong:
        hint = "run `make env` in a clone, else `pip install --force-reinstall livemart`"
        return Finding("versions", "problem", ", ".join(wrong), hint)
    return Finding("versions", "ok", ", ".join(right))


def check_jars(folder: Path | None, scheme: str = "") -> Finding:
    """Look for the jars that Spark needs for a warehouse at such a URL, and fetch nothing."""
    if not is_named(folder) and (missing := missing_jars(scheme=scheme)):
        names = ", ".join(jar.file_name for jar in missing)
        hint = "nothing to do: the first command that starts Spark fetches them"
        return Finding("jars", "warning", f"{jar_cache()}: found no {names}", hint)
    return _guarded("jars", lambda: _say_jars(find_jars(folder, scheme)))


def _say_jars(jars: Sequence[Path]) -> str:
    return f"{len(jars)} jars in {jars[0].parent}"


def check_warehouse(warehouse: StoragePlace) -> Finding:
    """Look whether the warehouse can be written, or made, and make nothing.

    In a bucket an object is created and removed: its owner alone knows who may do so.
    """
    if not isinstance(warehouse, Path):
        return _guarded("warehouse", lambda: _look_into_bucket(warehouse))
    state = StateFolder(warehouse).path
    # Unlike Path.exists, this takes a file in a folder that may not be searched for absent.
    folder = next(path for path in (state, *state.parents) if os.path.exists(path))
    if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        is_there = os.path.exists(warehouse)
        message = f"{warehouse}" if is_there else f"{warehouse}, made by the first build"
        return Finding("warehouse", "ok", message)
    reason = "cannot be written" if folder.is_dir() else "is no folder"
    hint = "name one that you may write to: --warehouse DIR, or LIVEMART_WAREHOUSE"
    return Finding("warehouse", "problem", f"{warehouse}: {folder} {reason}", hint)


def _look_into_bucket(warehouse: StoragePlace) -> str:
    is_there = bool(open_storage(warehouse).names(most=1))
    require_leases(warehouse)
    return f"{warehouse}" if is_there else f"{warehouse}, made by the first build"


def check_disk(
    warehouse: StoragePlace, *, usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage
) -> Finding:
    """Check the free space of the disk that holds the warehouse, or this machine's files of one.

    A full disk stops a commit.
    """
    place = warehouse if isinstance(warehouse, Path) else LocalFolder(warehouse).path
    folder = next(path for path in (place, *place.parents) if os.path.exists(path))
    _, _, free = usage(folder)
    message = f"{free / _GIB:.1f} GiB free below {folder}"
    if free < _DISK_PROBLEM:
        return Finding("disk", "problem", message, "make room, then run the command again")
    if free < _DISK_WARNING:
        hint = "free space soon: a first build writes every table"
        return Finding("disk", "warning", message, hint)
    return Finding("disk", "ok", message)


def check_landing(landing: StoragePlace, warehouse: StoragePlace) -> Finding:
    """Look whether records can arrive and be read."""
    if not isinstance(landing, Path):
        problem = _guarded("landing", lambda: _list_all(landing))
        if problem.is_problem:
            return problem
    elif not landing.is_dir():
        hint = "make the folder, or name the right one with --landing"
        return Finding("landing", "warning", f"{landing}: no such folder", hint)
    elif not os.access(landing, os.R_OK | os.X_OK):
        return Finding("landing", "problem", f"{landing}: cannot be read", "change its permissions")
    if unread := unread_files(warehouse, landing):
        folders = "; ".join(map(str, unread))
        hint = "correct `path` in the source's meta.livemart; see docs/landing.md"
        return Finding("landing", "warning", f"{landing}: {folders}", hint)
    return Finding("landing", "ok", str(landing))


def _list_all(landing: StoragePlace) -> str:
    """List a bucket to its end: one name that cannot be read stops the landing of its folder."""
    return f"{landing}, {len(open_storage(landing).names()):,} objects"


def check_lock(holder: Holder | None, *, is_locked: bool) -> Finding:
    """Report the process that writes this warehouse."""
    if not is_locked:
        return Finding("lock", "ok", "no runner")
    hint = "one runner writes a warehouse: stop it (Ctrl-C or SIGTERM) before you start another"
    return Finding("lock", "warning", f"held by {holder or 'another process'}", hint)


def check_loopback(holder: Holder | None) -> Finding:
    """Look whether Spark can talk to itself, or a live runner's Spark Connect server answers."""
    if holder is not None and holder.connect_port is not None:
        address = ("127.0.0.1", holder.connect_port)
        try:
            socket.create_connection(address, timeout=2).close()
        except OSError as error:
            hint = "dbt in another terminal cannot join: stop the runner and start it again"
            message = f"Spark Connect at 127.0.0.1:{address[1]}: {error}"
            return Finding("loopback", "warning", message, hint)
        return Finding("loopback", "ok", f"Spark Connect answers at 127.0.0.1:{address[1]}")
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=2).close()
    except OSError as error:
        hint = "allow connections of this machine to itself: Spark's processes talk over 127.0.0.1"
        return Finding("loopback", "problem", f"127.0.0.1: {error}", hint)
    return Finding("loopback", "ok", "ports can be opened on 127.0.0.1")


def check_checkpoint(warehouse: StoragePlace) -> Finding:
    """Look whether Spark's checkpoint is the one that the snapshot log was written with."""
    checkpoint = StateFolder(warehouse).checkpoint
    newest = SnapshotLog(warehouse).newest()
    try:
        if newest is None:
            if read_epoch(checkpoint) is None:
                return Finding("checkpoint", "ok", "nothing built yet")
            return Finding("checkpoint", "ok", "begun, no snapshot yet")
        # Opening makes a checkpoint only where there is neither checkpoint nor log.
        open_checkpoint(checkpoint, Recorded(newest.epoch, newest.batch_id), new_epoch=False)
    except LivemartError as error:
        return Finding("checkpoint", "problem", f"{error.code}: {error.message}", error.hint)
    message = f"belongs to the log (snapshot {newest.snapshot_id}, batch {newest.batch_id})"
    if newest.status == "held":
        hint = "see `status` for the tests that hold it; readers stay on the snapshot before"
        return Finding("checkpoint", "warning", f"{message}; the newest snapshot is held", hint)
    return Finding("checkpoint", "ok", message)


def check_store(url: str | None, warehouse: StoragePlace) -> Finding:
    """Look whether readers see the snapshot of the log. No run fails if they do not."""
    if url is None:
        return Finding("store", "ok", "none: nothing is served")
    newest, is_served = SnapshotLog(warehouse).newest_published(), not serves_nothing(warehouse)
    standing = look_at_store(url, newest, datetime.now(UTC), is_served=is_served)
    level: Level = "ok" if standing.hint is None else "warning"
    refused = "".join(f"; {name} is not served: {why}" for name, why in standing.refused.items())
    message = f"{standing.place}: {standing.message}{refused}"
    return Finding("store", level, message, standing.hint)


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} at {sys.executable}")


def _guarded(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", look())
    except LivemartError as error:
        return Finding(name, "problem", f"{error.code}: {error.message}", error.hint)


def _required_versions() -> dict[str, str]:
    """Return the versions that the installed package requires, of packages that pin each other."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires("livemart") or []
    except metadata.PackageNotFoundError:
        return {}
    required = map(Requirement, lines)
    return {package.name: str(package.specifier) for package in required if package.name in _PINNED}


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
