"""Turns the models that dbt could not build into one error.

Used after each build. The message is the database's own, without the query plan below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from livemart.errors import RefreshError
from livemart.project.graph import Project
from livemart.project.node_results import NodeResult


def _without_plan(message: str) -> str:
    """Return what Spark found wrong, without the query plan that it shows below."""
    lines = message.strip().splitlines()
    ends = (n for n, line in enumerate(lines) if n and line.lstrip().startswith(("'", "+-", ":-")))
    return "\n".join(lines[: next(ends, len(lines))])


def refuse_failures(project: Project, results: Mapping[str, NodeResult]) -> None:
    """Stop if a model failed.

    Raises:
        RefreshError: MODEL_FAILED, naming each model with the database's own message.
    """
    failed = [result for result in results.values() if result.status == "error"]
    if not failed:
        return
    lines = []
    for result in failed:
        model = project.models.get(result.unique_id)
        lines.append(f"{model.file if model else result.name}: {_without_plan(result.message)}")
    raise RefreshError(
        "MODEL_FAILED",
        "\n".join(lines),
        hint="mend the model and run the command again; readers keep the last published snapshot",
    )
