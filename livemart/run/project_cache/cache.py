"""Keeps the compiled project and its plans on disk.

Used by the runtime, so that a command on an unedited project needs neither dbt nor the planner. A
kept project counts only for the very same inputs.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from io import BytesIO
from typing import Any

import structlog

from livemart.plan.planner import PlannedQueries
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Project
from livemart.run.input_files import Look
from livemart.run.project_cache.inputs import project_digest
from livemart.settings import Settings
from livemart.state.atomic_files import replace_file
from livemart.state.places import LocalFolder

_PLANS = (ProjectPlans, PlannedQueries)
# Besides those of this package: types of values in the config of a model.
_TYPES = {
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
}
_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class CachedProject:
    """A project as dbt has compiled it from files alone, those files, and its plans.

    `artifact`: dbt's `manifest.json`.
    """

    project: Project
    files: frozenset[str]
    artifact: bytes
    plans: ProjectPlans


class ProjectCache:
    """The compiled project of a warehouse, from one command to the next.

    Args:
        settings: of this run.
        look: at the files of its project, from before they are read.
    """

    def __init__(self, settings: Settings, look: Look) -> None:
        self._path = LocalFolder(settings.warehouse).compiled_project
        self._columns: object = None
        self._inputs: str | None = None
        # A file that was removed since the look is an edit.
        with suppress(OSError):
            self._inputs = project_digest(settings, look)

    def read(self) -> CachedProject | None:
        """Return the kept project; None if its inputs were others, or its file is torn."""
        if self._inputs is None:
            return None
        try:
            content = self._path.read_bytes()
            digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if digest != hashlib.sha256(payload).digest():
                return None
            inputs, cached = _Reader(BytesIO(payload)).load()
        except FileNotFoundError:
            return None
        except Exception as error:
            # Another version or another program wrote it.
            structlog.get_logger().debug("compiled_project_not_read", error=str(error))
            return None
        if inputs != self._inputs or not isinstance(cached, CachedProject):
            return None
        self._columns = cached.plans.columns
        return cached

    def write(self, cached: CachedProject) -> None:
        """Keep a project, unless it is the one that was read."""
        if self._inputs is None or self._columns == cached.plans.columns:
            return
        try:
            payload = pickle.dumps((self._inputs, cached), pickle.HIGHEST_PROTOCOL)
            replace_file(self._path, hashlib.sha256(payload).digest() + payload)
        except Exception as error:
            # The next command reads the project again.
            structlog.get_logger().debug("compiled_project_not_kept", error=str(error))


class _Reader(pickle.Unpickler):
    """Loads only data of this package, so that a changed file cannot run code."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) in _TYPES:
            return super().find_class(module_name, global_name)
        if module_name.startswith("livemart.") and "." not in global_name:
            kind = super().find_class(module_name, global_name)
            if isinstance(kind, type) and (kind in _PLANS or is_dataclass(kind)):
                return kind
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is no data of a project")
