"""Names the files of a project and of its packages as an analyst finds them.

Used where a setting is refused. dbt names a file of a package from the package's own folder, where
the project itself may have another file of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from livemart.project.yaml_places import text_of, top_setting

PROJECT_FILE = "dbt_project.yml"


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The files below the folder of a project; `project` is the name of it."""

    root: Path
    project: str

    def text(self, file: str) -> str:
        """Return the text of a file, empty if it cannot be read."""
        return text_of(self.root / file)

    def of(self, node: Any) -> str:
        """Return the file in which a node of dbt's is written."""
        return self._named(str(node.package_name), str(node.original_file_path))

    def describing(self, node: Any) -> str | None:
        """Return the YAML file that describes a node, None if it is written in one or has none."""
        package, _, path = (getattr(node, "patch_path", None) or "").partition("://")
        return self._named(package, path) if path else None

    def setting(self, node: Any) -> tuple[str, ...]:
        """Return the files that may give a node a setting; the first that does, wins for dbt."""
        special = tuple(filter(None, (self.of(node), self.describing(node))))
        if node.package_name == self.project:
            return (*special, PROJECT_FILE)
        return (PROJECT_FILE, *special, self._named(node.package_name, PROJECT_FILE))

    def _named(self, package: str, path: str) -> str:
        if package == self.project:
            return path
        folder = top_setting(self.text(PROJECT_FILE), "packages-install-path") or "dbt_packages"
        return str(PurePosixPath(folder, package, path))
