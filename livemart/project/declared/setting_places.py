"""Finds the line that gives a node one of dbt's settings.

Used for refused settings: one may come from the node's SQL, its YAML or `dbt_project.yml`.
"""

from __future__ import annotations

import re
from typing import Any

from livemart.project.declared.node_files import PROJECT_FILE, NodeFiles
from livemart.project.yaml_places import folder_setting_line, node_lines


def setting_place(node: Any, files: NodeFiles, *names: str) -> str | None:
    """Return `file:line` of a setting of dbt's node, None if no file of the project has it.

    Args:
        files: of the project.
        names: of the setting.
    """
    kind = str(node.resource_type)
    name = node.name
    if kind == "source":
        # dbt's entry of a source, before it is a node, has the source as a whole.
        name = node.source.name if hasattr(node, "source") else node.source_name
    for file in dict.fromkeys(files.setting(node)):
        text = files.text(file)
        line: int | None = None
        if file.rpartition("/")[2] == PROJECT_FILE:
            line = folder_setting_line(text, f"{kind}s", node.fqn, names)
        elif file.endswith((".yml", ".yaml")):
            lines = node_lines(text, (f"{kind}s", name))
            line = next((lines[key,] for key in names if (key,) in lines), None)
        elif (setting := re.search(rf"\b(?:{'|'.join(names)})\s*=", text, re.I)) is not None:
            line = text.count("\n", 0, setting.start()) + 1
        if line is not None:
            return f"{file}:{line}"
    return None
